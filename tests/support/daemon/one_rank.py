"""A rank whose events come from a list, and a conductor that follows it."""

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import cast

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.engines import MLX, EngineChoice
from jupiterd.cluster.training.gang_watchdog import GangWatchdog
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.leader.leading import Leading
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.work_events import WorkEvent
from jupiterd.errors import (
    WorkerCrashedError,
)
from jupiterd.ids import CycleId, NodeId
from tests.support.daemon.shapes import tiny_shape

CYCLE = CycleId("c" * 16)
A, B = NodeId("a"), NodeId("b")
LAUNCH = GangPlan(3, EngineChoice(MLX, (A, B), "as asked"), "", 0, 0.0)
PLAN = TrainPlan.model_construct(steps=100, micro_batch_sequences=8)


CRASH = WorkerCrashedError("beta: the train worker (pid 7) was killed by SIGABRT: NCCL WARN")


class OneRank:
    """As much of a term of leading as following a rank needs: its events come from a list."""

    def __init__(self, *events: WorkEvent, is_slow: bool = False) -> None:
        self.board = ProgressBoard()
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        self.ways = PseudoGradients()
        self.journal = SimpleNamespace(state=State())
        self._events = events
        self._is_slow = is_slow

    def cycle(self, _cycle: CycleId) -> CycleState:
        return CycleState()

    def hardware_of(self, _node: NodeId) -> None:
        return None

    async def run(self) -> AsyncGenerator[WorkEvent]:
        for event in self._events:
            yield event
        if self._is_slow:
            await asyncio.Event().wait()


def following(rank: OneRank, launch: GangPlan = LAUNCH, parent: str = "") -> GangSupervisor:
    conductor = GangSupervisor(cast("Leading", rank), CYCLE, 1, tiny_shape(), PLAN, parent)
    conductor._shown.begin(launch)
    conductor._watch = GangWatchdog(len(launch.gang), 0.0)
    return conductor
