"""Letting nodes join a gang that trains: they get ready while it goes on, then it is formed anew.

Owns that order of things. Doesn't know who may join (`gang_growth`), who can be met (`gang_reach`),
nor how the next epoch is launched. The ranks stop together after a step that is finished, so
nothing is lost; and one whom they can't meet costs them nothing at all.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass

from jupiterd.cluster.gang_growth import GangGrowth
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.gang_reach import GangReach
from jupiterd.daemon.launch import Launch
from jupiterd.daemon.leading import Leading
from jupiterd.daemon.stray_epochs import close_strays
from jupiterd.errors import JupiterError
from jupiterd.ids import CycleId, NodeId

log = logging.getLogger(__name__)

LOOK_S = 1.0

CATCH_UP_S = 60.0
"""While members may still fetch their state nobody else joins: they would have to begin anew."""


@dataclass(frozen=True)
class Joining:
    """What is to be done on the way."""

    cycle: CycleId
    eligible: Callable[[], AbstractSet[NodeId]]
    """Who could train just now, members included."""
    bring: Callable[[frozenset[NodeId]], Awaitable[frozenset[NodeId]]]
    """Lets newcomers get ready, and returns those that are."""
    on_stop: Callable[[frozenset[NodeId]], None]
    """Called before the gang is told to stop."""
    on_stopping: Callable[[], None]
    """Called once it was told."""


@asynccontextmanager
async def growing(
    leading: Leading, launch: Launch, reach: GangReach, joining: Joining
) -> AsyncGenerator[None]:
    """Take in whoever may join while the gang is followed, and close what else is open."""

    async def grow() -> None:
        while True:
            newcomers = await joining.bring(
                await reach.can_be_met(
                    launch, await _newcomers(launch, reach.growth, joining.eligible)
                )
            )
            if not newcomers:
                continue
            joining.on_stop(newcomers)
            try:
                await leading.dispatcher.stop_after_step(launch.gang[0], leading.term, launch.epoch)
            except JupiterError as error:
                log.warning("gang_not_stopped", extra={"reason": error.message})
            else:
                joining.on_stopping()
                return

    async with asyncio.TaskGroup() as group:
        beside = close_strays(leading, joining.cycle, launch.epoch)
        tasks = [group.create_task(grow()), group.create_task(beside)]
        yield
        for task in tasks:
            task.cancel()


async def _newcomers(
    launch: Launch, growth: GangGrowth, eligible: Callable[[], AbstractSet[NodeId]]
) -> frozenset[NodeId]:
    while True:
        await asyncio.sleep(LOOK_S)
        if launch.late and now_s() - launch.began_s < CATCH_UP_S:
            continue
        found = eligible()
        if found > set(launch.gang) and (newcomers := growth.look(found, now_s())):
            return newcomers
