"""A rank whose events come from a list, and a supervisor that follows it."""

import asyncio
from collections.abc import AsyncGenerator

from jupiterd.cluster.planning.engines import MLX, EngineChoice
from jupiterd.cluster.training.gang_watchdog import GangWatchdog
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.gangs.rank_follower import RankEvents
from jupiterd.daemon.gangs.rendezvous import RingListeners
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.work_events import WorkEvent
from jupiterd.errors import WorkerCrashedError
from jupiterd.ids import CycleId, NodeId
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.term_parts import FakeTerm, services_of

CYCLE = CycleId("c" * 16)
A, B = NodeId("a"), NodeId("b")
LAUNCH = GangPlan(3, EngineChoice(MLX, (A, B), "as asked"), "", 0, 0.0)
PLAN = TrainPlan.model_construct(steps=100, micro_batch_sequences=8)


CRASH = WorkerCrashedError("beta: the train worker (pid 7) was killed by SIGABRT: NCCL WARN")


class OneRank:
    """As much of a term of leading as following a rank needs: its events come from a list."""

    def __init__(self, *events: WorkEvent, is_slow: bool = False) -> None:
        self.term = FakeTerm(A)
        self.term.know(CYCLE)
        self.services = services_of(self.term)
        self.board, self.pseudo_gradients = self.services.board, self.services.pseudo_gradients
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        self._events = events
        self._is_slow = is_slow

    async def run(self) -> AsyncGenerator[WorkEvent]:
        for event in self._events:
            yield event
        if self._is_slow:
            await asyncio.Event().wait()


def events_of(supervisor: GangSupervisor, gang_plan: GangPlan = LAUNCH) -> RankEvents:
    """What takes in the events of an attempt's ranks."""
    return supervisor._rank_events(gang_plan, RingListeners())


def following(rank: OneRank, gang_plan: GangPlan = LAUNCH, parent: str = "") -> RankEvents:
    rank.term.know(CycleId(parent))
    supervisor = GangSupervisor(rank.services, TrainedRound(CYCLE, 1, tiny_shape(), PLAN, parent))
    supervisor._progress.begin(gang_plan)
    supervisor._watch.watchdog = GangWatchdog(len(gang_plan.gang), 0.0)
    return events_of(supervisor, gang_plan)
