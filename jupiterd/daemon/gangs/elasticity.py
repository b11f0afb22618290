"""Letting nodes join or leave a gang that trains: it is stopped after a step and formed anew.

Owns that order of things: newcomers get ready while the others go on; who is drained leaves at
once. Doesn't know who may join (`elasticity`), who can be met (`gang_reachability`), nor how the
next attempt is launched. The ranks stop together after a step that is finished, so nothing is lost;
and a newcomer whom they can't meet costs them nothing at all.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass

from jupiterd.cluster.training.elasticity import Elasticity
from jupiterd.daemon.gangs.gang_reachability import GangReachability
from jupiterd.daemon.leader.orphan_attempts import close_strays
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import CycleId, NodeId

log = logging.getLogger(__name__)

LOOK_S = 1.0

CATCH_UP_S = 60.0
"""While members may still fetch their state nobody else joins: they would have to begin anew."""


@dataclass(frozen=True)
class GangChanges:
    """What is to be done on the way."""

    cycle: CycleId
    eligible: Callable[[], AbstractSet[NodeId]]
    """Who could train just now, members included."""
    leaving: Callable[[], AbstractSet[NodeId]]
    """Members that are to do nothing any more."""
    bring: Callable[[frozenset[NodeId]], Awaitable[frozenset[NodeId]]]
    """Lets newcomers get ready, and returns those that are."""
    name: Callable[[NodeId], str]
    on_stop: Callable[[str], None]
    """Called with the reason before the gang is told to stop."""
    on_not_told: Callable[[], None]
    """Called where it couldn't be told."""
    on_stopping: Callable[[], None]
    """Called once it was told."""


@asynccontextmanager
async def changing(
    term: Term, calls: WorkCalls, launch: GangPlan, reach: GangReachability, changes: GangChanges
) -> AsyncGenerator[None]:
    """Let nodes join and leave while the gang is followed, and close what else is open."""
    stop = _Stop(calls, launch, changes)
    async with asyncio.TaskGroup() as group:
        beside = close_strays(term, changes.cycle, launch.attempt)
        work = (_grow(launch, reach, changes, stop), _shrink(changes, stop), beside)
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


class _Stop:
    """Tells a gang to stop after its running step; once is enough."""

    def __init__(self, calls: WorkCalls, launch: GangPlan, changes: GangChanges) -> None:
        self._calls = calls
        self._launch = launch
        self._changes = changes
        self._asking = asyncio.Lock()
        self._is_told = False

    async def __call__(self, reason: str) -> bool:
        """Say whether it was told, by us or before."""
        async with self._asking:
            self._is_told = self._is_told or await self._tell(reason)
            return self._is_told

    async def _tell(self, reason: str) -> bool:
        launch = self._launch
        self._changes.on_stop(reason)
        try:
            await self._calls.stop_after_step(launch.gang[0], launch.attempt)
        except JupiterError as error:
            self._changes.on_not_told()
            log.warning("gang_not_stopped", extra={"reason": error.message})
            return False
        self._changes.on_stopping()
        return True


async def _grow(
    launch: GangPlan, reach: GangReachability, changes: GangChanges, stop: _Stop
) -> None:
    while True:
        settled = await _newcomers(launch, reach.growth, changes.eligible)
        newcomers = await changes.bring(await reach.can_be_met(launch, settled))
        if newcomers and await stop(f"{_named(newcomers, changes)} joins"):
            return


async def _shrink(changes: GangChanges, stop: _Stop) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        leavers = changes.leaving()
        if leavers and await stop(f"{_named(leavers, changes)} is drained"):
            return


def _named(nodes: AbstractSet[NodeId], changes: GangChanges) -> str:
    return ", ".join(sorted(map(changes.name, nodes)))


async def _newcomers(
    launch: GangPlan, growth: Elasticity, eligible: Callable[[], AbstractSet[NodeId]]
) -> frozenset[NodeId]:
    while True:
        await asyncio.sleep(LOOK_S)
        if launch.late and now_s() - launch.began_s < CATCH_UP_S:
            continue
        found = eligible()
        if found > set(launch.gang) and (newcomers := growth.look(found, now_s())):
            return newcomers
