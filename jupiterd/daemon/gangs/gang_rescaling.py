"""Letting nodes join or leave a gang that trains: it is stopped after a step and formed anew.

Owns that order of things: newcomers get ready while the others go on; who is drained, or slows the
others, leaves at once. Doesn't know who may join (`scale_policy`), who is slow (`straggler_watch`),
who can be met (`gang_reachability`), nor how the next attempt is launched. The ranks stop together
after a step that is finished, so nothing is lost; and a newcomer whom they can't meet costs them
nothing at all.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass

from jupiterd.cluster.training.scale_policy import ScalePolicy
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
class RescalingPlan:
    """What is to be done on the way."""

    cycle: CycleId
    eligible: Callable[[], AbstractSet[NodeId]]
    """Who could train just now, members included."""
    leaving: Callable[[], AbstractSet[NodeId]]
    """Members that are to do nothing any more."""
    stragglers: Callable[[], Mapping[NodeId, str]]
    """Members that the others go on without, and why."""
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
async def allow_rescaling(
    term: Term, calls: WorkCalls, gang_plan: GangPlan, reach: GangReachability, plan: RescalingPlan
) -> AsyncGenerator[None]:
    """Let nodes join and leave while the gang is followed, and close what else is open."""
    stop = _Stop(calls, gang_plan, plan)
    async with asyncio.TaskGroup() as group:
        beside = close_strays(term, plan.cycle, gang_plan.attempt)
        work = (_grow(gang_plan, reach, plan, stop), _shrink(plan, stop), beside)
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


class _Stop:
    """Tells a gang to stop after its running step; once is enough."""

    def __init__(self, calls: WorkCalls, gang_plan: GangPlan, plan: RescalingPlan) -> None:
        self._calls = calls
        self._gang_plan = gang_plan
        self._plan = plan
        self._asking = asyncio.Lock()
        self._is_told = False

    async def __call__(self, reason: str) -> bool:
        """Say whether it was told, by us or before."""
        async with self._asking:
            self._is_told = self._is_told or await self._tell(reason)
            return self._is_told

    async def _tell(self, reason: str) -> bool:
        gang_plan = self._gang_plan
        self._plan.on_stop(reason)
        try:
            await self._calls.stop_after_step(gang_plan.gang[0], gang_plan.attempt)
        except JupiterError as error:
            self._plan.on_not_told()
            log.warning("gang_not_stopped", extra={"reason": error.message})
            return False
        self._plan.on_stopping()
        return True


async def _grow(
    gang_plan: GangPlan, reach: GangReachability, plan: RescalingPlan, stop: _Stop
) -> None:
    while True:
        settled = await _newcomers(gang_plan, reach.scale_policy, plan.eligible)
        newcomers = await plan.bring(await reach.can_be_met(gang_plan, settled))
        if newcomers and await stop(f"{_named(newcomers, plan)} joins"):
            return


async def _shrink(plan: RescalingPlan, stop: _Stop) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        leavers = plan.leaving()
        if leavers and await stop(f"{_named(leavers, plan)} is drained"):
            return
        stragglers = plan.stragglers()
        if stragglers and await stop(_let_go(stragglers, plan)):
            return


def _let_go(stragglers: Mapping[NodeId, str], plan: RescalingPlan) -> str:
    told = sorted((plan.name(node), why) for node, why in stragglers.items())
    return "; ".join(f"{name} is let go of; {why}" for name, why in told)


def _named(nodes: AbstractSet[NodeId], plan: RescalingPlan) -> str:
    return ", ".join(sorted(map(plan.name, nodes)))


async def _newcomers(
    gang_plan: GangPlan, scale_policy: ScalePolicy, eligible: Callable[[], AbstractSet[NodeId]]
) -> frozenset[NodeId]:
    while True:
        await asyncio.sleep(LOOK_S)
        if gang_plan.late and now_s() - gang_plan.began_s < CATCH_UP_S:
            continue
        found = eligible()
        if found > set(gang_plan.gang) and (newcomers := scale_policy.look(found, now_s())):
            return newcomers
