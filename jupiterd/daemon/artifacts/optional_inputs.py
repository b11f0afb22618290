"""Inputs that only save work: what the round before found.

Owns leaving them out where they can't be had. Doesn't know what is in them.
"""

import logging
from dataclasses import replace

from jupiterd.cycle.base.work_item import PREVIOUS
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import NotFoundError

log = logging.getLogger(__name__)


async def without_lost(artifact_cache: ArtifactCache, order: WorkOrder) -> WorkOrder:
    """Bring them here; return the order as it is, or without all of them where one is missing.

    A part of them would be wrong: a page that hasn't changed is looked up among the old samples.
    """
    previous = {n: artifact for n, artifact in order.inputs.items() if n.startswith(PREVIOUS)}
    try:
        await artifact_cache.ensure_all(previous)
    except NotFoundError as error:
        log.warning("previous_round_missing", extra={"order": order.id, "reason": error.message})
        return replace(order, inputs={n: order.inputs[n] for n in order.inputs.keys() - previous})
    return order
