"""`generator.try`: whether a model that others made can write here, before a cycle begins with it.

Owns where it is tried, and for how long. A cycle that would find out in its second phase that its
server has no such model has spent its first one for nothing. Doesn't know what is asked (workers).
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from jupiterd.cluster.planning.engines import AUTO
from jupiterd.cycle.domain.generator import Generator, generator_from
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.errors import (
    DeviceBusyError,
    PeerUnreachableError,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId

log = logging.getLogger(__name__)

LONGEST_S: Final = 300.0
"""A large model has to be brought to the machine, and loaded."""

TOLD_AFTER_S: Final = LONGEST_S + 30.0
"""Whoever asks the leader waits for longer than the leader does, and so hears what came of it."""

TASK: Final = "try_generator"
SERVER_S: Final = 60.0
"""A server that hasn't answered by then is busy with others, or loads its model."""


async def try_generator(
    placement: Placement, calls: WorkCalls, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Have the model answer one short prompt on a machine that would ask it; say whether it did.

    It isn't tried where nobody can just now, nor where its weights take too long to be brought, or
    a server is busy with others for so long: then the round itself waits for them.

    Raises:
        UsageError: that can be no generator.
        GeneratorUnreachableError: it isn't there, or only fails.
        JupiterError: it can't be loaded, or refuses.
    """
    generator = generator_from(dict(arguments.get("generator") or {}))
    if generator is None:
        return {"is_tried": False}
    limit_s = SERVER_S if generator.url else LONGEST_S
    try:
        node = _place(placement, generator)
        await asyncio.wait_for(_tried(calls, node, generator, arguments), limit_s)
    except TimeoutError:
        failure = "gave no answer" if generator.url else "wasn't loaded"
        log.info("generator_not_tried", extra={"reason": f"{failure} within {limit_s:g} s"})
        return {"is_tried": False}
    except (DeviceBusyError, PeerUnreachableError) as error:
        log.info("generator_not_tried", extra={"reason": error.message})
        return {"is_tried": False}
    return {"is_tried": True}


def _place(placement: Placement, generator: Generator) -> NodeId:
    """Return who tries it; raises PeerUnreachableError where nobody can."""
    if generator.node in placement.machines.fit_nodes():
        return NodeId(generator.node)
    return placement.place(needs_engine=bool(generator.artifact))


async def _tried(
    calls: WorkCalls, node: NodeId, generator: Generator, arguments: Mapping[str, Any]
) -> None:
    server = {"server": generator.to_plain()} if generator.url else {}
    params = {"generator": generator.id, "engine": str(arguments.get("engine", AUTO)), **server}
    order = calls.order(CycleId(secrets.token_hex(4)), "try", TASK, params)
    inputs = {"model": ArtifactId(generator.artifact)} if generator.artifact else {}
    async with aclosing(calls.run(node, replace(order, inputs=inputs))) as events:
        async for _ in events:
            pass
