"""Inputs without which work can begin: those fetched while it runs, and those that only save work.

Owns which those are, and handing them in. Doesn't know what the work does without them: a rank that
joins a gang takes part until it has the state of the others.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from jupiterd.cycle.base.work_item import PREVIOUS
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_checkpoint
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import JupiterError, NotFoundError
from jupiterd.ids import ArtifactId, short
from jupiterd.protocol.frames import InputArrived

log = logging.getLogger(__name__)

PARAM = "late_inputs"
"""Names them in an order."""

STATE = "checkpoint"
"""The input that is worth waiting for: it was made a moment ago, and all else is there before."""

TIMEOUT_S = 600.0


def at_once(inputs: Mapping[str, ArtifactId]) -> list[ArtifactId]:
    """Return what a gang's members can fetch while it isn't formed yet."""
    return [artifact for name, artifact in inputs.items() if name != STATE]


def without(order: WorkOrder) -> dict[str, ArtifactId]:
    """Return what must be here before the work begins."""
    late = _names(order)
    return {name: artifact for name, artifact in order.inputs.items() if name not in late}


async def without_lost(artifact_cache: ArtifactCache, order: WorkOrder) -> WorkOrder:
    """Fetch what the round before found; return the order, without all of it if a part is lost.

    These inputs only save work. A part of them would be wrong: a page that hasn't changed is looked
    up among the old samples.
    """
    previous = {n: artifact for n, artifact in order.inputs.items() if n.startswith(PREVIOUS)}
    try:
        await artifact_cache.ensure_all(previous)
    except NotFoundError as error:
        log.warning("previous_round_missing", extra={"order": order.id, "reason": error.message})
        return replace(order, inputs={n: order.inputs[n] for n in order.inputs.keys() - previous})
    return order


async def bring(
    artifact_cache: ArtifactCache, order: WorkOrder, hand_in: Callable[[InputArrived], None]
) -> None:
    """Fetch the others, one after another, and hand in each; or say why it won't come."""
    late: Mapping[str, ArtifactId] = {n: order.inputs[n] for n in _names(order) & {*order.inputs}}
    for name, artifact in late.items():
        hand_in(await _fetched(artifact_cache, name, artifact))


async def _fetched(artifact_cache: ArtifactCache, name: str, artifact: ArtifactId) -> InputArrived:
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            path = await whole_checkpoint(artifact_cache, artifact)
    except (JupiterError, TimeoutError, OSError) as error:
        reason = str(error) or f"it took more than {TIMEOUT_S:g} s"
        log.warning("late_input_missing", extra={"input": name, "reason": reason})
        return InputArrived(name, "", f"the {name} couldn't be fetched: {reason}"[:500])
    except Exception as error:  # ours: the rank gets the reason, and the daemon goes on
        log.exception("late_input_failed")
        return InputArrived(name, "", f"the {name} couldn't be fetched: {error}"[:500])
    fetched = {"artifact": short(artifact), "elapsed_s": f"{time.monotonic() - began_s:.3f}"}
    log.info("late_input_fetched", extra={"input": name, **fetched})
    return InputArrived(name, str(path))


def _names(order: WorkOrder) -> set[str]:
    return {str(name) for name in order.params.get(PARAM, ())}
