"""Watching a gang's clocks while it is followed, and what a verdict means for the next gang.

Owns the pace of the looks, and which members were silent. Doesn't know what is judged
(`gang_watchdog`), or how a bad link is found (`gang_reachability`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from jupiterd.cluster.training.gang_watchdog import BEAT_S, GangWatchdog, Silent, Stuck
from jupiterd.daemon.gangs.gang_reachability import GangReachability
from jupiterd.daemon.gangs.late_joiners import LateJoiners
from jupiterd.daemon.gangs.surviving_states import save_request_for
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError, PeerUnreachableError, TimedOutError
from jupiterd.ids import NodeId

WatchdogFinding = Silent | Stuck


class AttemptWatch:
    """Ends an attempt whose members fall silent or take no step; for the attempts of one round."""

    def __init__(
        self,
        machines: Machines,
        reach: GangReachability,
        late: LateJoiners,
        trained_round: TrainedRound,
        self_id: NodeId,
    ) -> None:
        self._machines, self._reach, self._late = machines, reach, late
        self._trained_round = trained_round
        self._self_id = self_id
        self.watchdog = GangWatchdog(0, 0.0)
        """Of the newest attempt."""
        self.silent: set[NodeId] = set()
        """Whose members weren't heard when the newest attempt's end was due."""

    def over(self, gang_plan: GangPlan) -> AbstractAsyncContextManager[None]:
        """Let silence of a rank's node, or of all its steps, end what is done meanwhile."""
        self.silent.clear()
        self.watchdog = self._watchdog_of(gang_plan)
        return watching(
            self.watchdog,
            lambda finding: self.error_of(finding, gang_plan),
            lambda: self.look_into(gang_plan),
        )

    def _watchdog_of(self, gang_plan: GangPlan) -> GangWatchdog:
        """Return the clocks of a new attempt; they take over what the last ones have measured."""
        save_s = save_request_for(self._trained_round.shape, 0).within_s
        rate = gang_plan.predicted_tokens_per_s
        step_s = self._trained_round.step_tokens / rate if rate else None
        first_step_s = self.watchdog.next_first_step_s(step_s)
        longest_busy_s = self.watchdog.longest_busy_s
        return GangWatchdog(len(gang_plan.gang), now_s(), save_s, longest_busy_s, first_step_s)

    def error_of(self, finding: WatchdogFinding, gang_plan: GangPlan) -> JupiterError:
        """Return the error that ends the attempt; the next one passes over the silent members."""
        if isinstance(finding, Silent):
            for rank in (finding.rank, *finding.others):
                self.silent.add(gang_plan.gang[rank])
                self._machines.pass_over(gang_plan.gang[rank])
        else:
            self._late.were_too_slow(gang_plan.late)
        name = "" if finding.rank is None else self._machines.name_of(gang_plan.gang[finding.rank])
        return as_error(finding, name)

    async def look_into(self, gang_plan: GangPlan) -> None:
        """End an attempt that takes no step because of a bad link; the next leaves its node out.

        Raises:
            PeerUnreachableError: there is such a link.
        """
        gone = await self._reach.hindering(gang_plan)
        if gone:
            # A request to them would be long on its way; they end their part by themselves.
            self.silent.update(set(gone) - {self._self_id})
            names = ", ".join(sorted(map(self._machines.name_of, gone)))
            raise PeerUnreachableError(f"nothing comes of the gang: the link of {names} is bad")


def as_error(finding: WatchdogFinding, who: str) -> JupiterError:
    """Return the error for people; `who`: the node that it is about, or empty."""
    if isinstance(finding, Silent):
        return PeerUnreachableError(f"{who} has said nothing for {finding.for_s:.1f} s")
    together = "; every rank is alive, and each waits for the others"
    waited = f"; all wait for rank {finding.rank} on {who}" if who else together
    return TimedOutError(f"no step has come to its end for {finding.for_s:.0f} s{waited}")


@asynccontextmanager
async def watching(
    watch: GangWatchdog,
    error_of: Callable[[WatchdogFinding], JupiterError],
    look_into: Callable[[], Coroutine[None, None, None]],
) -> AsyncGenerator[None]:
    """Let a verdict end what is done meanwhile, with its error; `look_into` may raise its own."""
    async with asyncio.TaskGroup() as group:
        looks = group.create_task(_look(watch, error_of, look_into, group))
        yield
        looks.cancel()


async def _look(
    watch: GangWatchdog,
    error_of: Callable[[WatchdogFinding], JupiterError],
    look_into: Callable[[], Coroutine[None, None, None]],
    group: asyncio.TaskGroup,
) -> None:
    into: asyncio.Task[None] | None = None
    try:
        while True:
            await asyncio.sleep(BEAT_S)
            if (finding := watch.look(now_s())) is not None:
                raise error_of(finding)
            if (into is None or into.done()) and watch.is_in_doubt(now_s()):
                into = group.create_task(look_into())
    finally:
        if into is not None:
            into.cancel()
