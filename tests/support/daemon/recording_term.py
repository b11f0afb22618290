"""A term that records what is committed, and the epochs that tests conduct on it."""

import asyncio
from types import SimpleNamespace
from typing import cast

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.leader.leading import Leading
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.runtime.work_events import CheckpointMade
from jupiterd.ids import ArtifactId, CycleId, NodeId
from tests.support.daemon.one_rank import CYCLE, LAUNCH, PLAN, A, B
from tests.support.daemon.shapes import tiny_shape


class Recording:
    """As much of a term of leading as recording a checkpoint needs: facts go into one cycle."""

    self_id = A

    def __init__(self, *facts: CycleFact) -> None:
        self.state = CycleState()
        self.recorded: list[CycleFact] = []
        for index, fact in enumerate(facts, 1):
            self.state.apply(fact, (1, A, "u", index))
        self.library = self
        self.journal = SimpleNamespace(state=SimpleNamespace(cycles={CYCLE: self.state}))
        self.board = ProgressBoard()
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        self.may_copy = asyncio.Event()
        self.may_copy.set()
        self.copied: list[str] = []
        self.passed_over: list[NodeId] = []
        self.is_over = False
        self.kept: list[CheckpointMade] = []
        """What survivors hand over when their epoch is ended."""

    async def spread(self, _artifacts: object, _nodes: object = ()) -> int:
        return 0

    async def keep_two_copies(self, artifact: ArtifactId, _holder: NodeId) -> None:
        await self.may_copy.wait()
        self.copied.append(artifact)

    async def is_in_reach(self, _artifact: str) -> bool:
        return True

    def hardware_of(self, _node: NodeId) -> None:
        return None

    def names(self) -> dict[NodeId, str]:
        return {A: "alpha"}

    def purged(self, _started: object) -> frozenset[str]:
        return frozenset()

    def pass_over(self, node: NodeId) -> None:
        self.passed_over.append(node)

    async def end_gang(self, *_: object) -> list[tuple[NodeId, CheckpointMade]]:
        return [(A, made) for made in self.kept]

    def cycle(self, _cycle: CycleId) -> CycleState:
        return self.state

    async def record(self, *facts: CycleFact) -> None:
        for fact in facts:
            self.recorded.append(fact)
            self.state.apply(fact, (2, A, "u", len(self.recorded)))


def epoch_on(term: Recording, tip: str) -> GangSupervisor:
    """The conductor of an epoch that started from a checkpoint."""
    plan = PLAN
    conductor = GangSupervisor(cast("Leading", term), CYCLE, 1, tiny_shape(), plan)
    conductor._line.tip = tip
    return conductor


def checkpoint(name: str, step: int) -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, 1, "", ArtifactId(name), 1, step, 100 * step, step, 3.5, False
    )


def made(artifact: str, step: int) -> CheckpointMade:
    return CheckpointMade(ArtifactId(artifact), step, 100 * step, step, 3.5)


def ending_at(step: int) -> TrainPlan:
    return PLAN.model_copy(update={"steps": step})


async def tell(conductor: GangSupervisor, checkpoint: CheckpointMade) -> None:
    """Let rank 0 tell of a checkpoint, and wait for what comes of it."""
    async with conductor._committing(LAUNCH):
        conductor._note(0, B, checkpoint, LAUNCH)


def steps(term: Recording) -> list[int]:
    return [fact.step for fact in term.recorded if isinstance(fact, CheckpointCommitted)]
