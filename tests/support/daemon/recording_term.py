"""A term that records what is committed, and the attempts that tests supervise on it."""

from jupiterd.cluster.facts.facts import CheckpointCommitted, Fact
from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.cluster.training.gang_watchdog import GangWatchdog
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
)
from jupiterd.ids import ArtifactId
from jupiterd.protocol.training_values import TrainingProgress
from tests.support.daemon.one_rank import CYCLE, LAUNCH, PLAN, A, B, events_of
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.term_parts import (
    FakeCalls,
    FakeMachines,
    FakeReach,
    FakeTerm,
    services_of,
)


class Recording:
    """As much of a term of leading as recording a checkpoint needs: facts go into one cycle."""

    self_id = A

    def __init__(self, *facts: CycleFact) -> None:
        self.term = FakeTerm(A)
        self.state = self.term.know(CYCLE, *facts)
        self.machines = FakeMachines(names={A: "alpha"})
        self.reach, self.calls = FakeReach(self.term), FakeCalls()
        self.services = services_of(
            self.term, machines=self.machines, reach=self.reach, calls=self.calls
        )
        self.board = self.services.board
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)

    @property
    def recorded(self) -> list[Fact]:
        return self.term.recorded

    async def record(self, *facts: Fact) -> None:
        await self.term.record(*facts)


def attempt_on(term: Recording, tip: str) -> GangSupervisor:
    """The supervisor of an attempt that started from a checkpoint."""
    trained = TrainedRound(CYCLE, 1, tiny_shape(), PLAN)
    supervisor = GangSupervisor(term.services, trained)
    supervisor._lineage.tip = tip
    supervisor._watch.watchdog = GangWatchdog(len(LAUNCH.gang), 0.0)
    return supervisor


def checkpoint(name: str, step: int) -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, 1, "", ArtifactId(name), 1, step, 100 * step, step, 3.5, False
    )


def made(artifact: str, step: int) -> CheckpointStored:
    return CheckpointStored(ArtifactId(artifact), TrainingProgress(step, 100 * step, step, 3.5))


def ending_at(step: int) -> TrainPlan:
    return PLAN.model_copy(update={"steps": step})


async def report(supervisor: GangSupervisor, checkpoint: CheckpointStored) -> None:
    """Let rank 0 report a checkpoint, and wait until it is recorded."""
    async with supervisor._committing(LAUNCH):
        events_of(supervisor).take_in(0, B, checkpoint)


def steps(term: Recording) -> list[int]:
    return [fact.step for fact in term.recorded if isinstance(fact, CheckpointCommitted)]
