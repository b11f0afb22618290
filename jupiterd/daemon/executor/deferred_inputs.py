"""Inputs that are fetched while the work that wants them runs already.

Owns which those are, and handing them in. Doesn't know what the work does without them: a rank that
joins a gang takes part until it has the state of the others.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_checkpoint
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import JupiterError
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
    except Exception as error:  # ours: the rank is told, and the daemon goes on
        log.exception("late_input_failed")
        return InputArrived(name, "", f"the {name} couldn't be fetched: {error}"[:500])
    fetched = {"artifact": short(artifact), "elapsed_s": f"{time.monotonic() - began_s:.3f}"}
    log.info("late_input_fetched", extra={"input": name, **fetched})
    return InputArrived(name, str(path))


def _names(order: WorkOrder) -> set[str]:
    return {str(name) for name in order.params.get(PARAM, ())}
