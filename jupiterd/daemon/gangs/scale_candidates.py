"""Who could be in a gang while it trains, and making newcomers ready for it.

Owns comparing the gang with what would be chosen now. Doesn't know when a gang is changed
(`scale_policy`), who is slow (`straggler_watch`), whether newcomers can be met
(`gang_reachability`), or how an attempt is launched.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.daemon.gangs.gang_preflight import GangPreflight
from jupiterd.daemon.gangs.straggler_watch import StragglerWatch
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.gang_partition import partition_of_gang
from jupiterd.daemon.planning.gang_plan import GangPlan, choose
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.errors import JupiterError, MemoryMissingError
from jupiterd.ids import ArtifactId, NodeId


class ScaleCandidates:
    """Those of one running attempt."""

    def __init__(
        self,
        services: TrainingServices,
        trained_round: TrainedRound,
        preparation: GangPreflight,
        gang_plan: GangPlan,
        stragglers: StragglerWatch,
    ) -> None:
        self._term, self._placement = services.term, services.placement
        self._reach = services.reach
        self._trained_round = trained_round
        self._preparation = preparation
        self._gang_plan, self._stragglers = gang_plan, stragglers

    def eligible(self) -> frozenset[NodeId]:
        """Return who could train just now, members included."""
        best = self._best()
        if self._gang_plan.partition is None and self._stragglers.consider(
            best.engine, frozenset(best.gang)
        ):
            best = self._best()
        return frozenset(best.gang)

    def drained(self) -> frozenset[NodeId]:
        """Return the members that people have drained meanwhile."""
        return self._placement.drained() & {*self._gang_plan.gang}

    async def bring(
        self, newcomers: AbstractSet[NodeId], inputs: Iterable[ArtifactId]
    ) -> frozenset[NodeId]:
        """Let newcomers get ready, and return those that are."""
        wanted = replace(self._gang_plan, choice=self._best())
        try:
            cut = partition_of_gang(
                self._placement.machines,
                self._term.cycle(self._trained_round.cycle),
                self._trained_round,
                wanted.choice,
            )
        except MemoryMissingError:  # with them each would have to hold more than it can
            return frozenset()
        ready = await self._preparation.ready(replace(wanted, partition=cut), newcomers)
        await self._reach.artifact_cache.spread(inputs, ready)
        return ready

    def _best(self) -> EngineChoice:
        ranks, without = self._trained_round.plan.batch_sequences, self._preparation.left_out
        without |= self._stragglers.let_go - {*self._gang_plan.gang}
        running = self._gang_plan.choice
        try:
            state = self._term.cycle(self._trained_round.cycle)
            found = choose(self._placement, state, max_ranks=ranks, without=without)
        except JupiterError:
            return running
        is_known = found.engine == running.engine or self._have_trained(found)
        return found if is_known else running

    def _have_trained(self, choice: EngineChoice) -> bool:
        """Say whether all of a gang have trained together before, on its engine.

        Else a gang on another one might end for a newcomer, and then its members not be fit for it.
        """
        opened = self._term.cycle(self._trained_round.cycle).attempts_opened.values()
        return any(
            attempt.engine.partition("/")[0] == choice.engine and {*choice.gang} <= {*attempt.gang}
            for attempt in opened
        )
