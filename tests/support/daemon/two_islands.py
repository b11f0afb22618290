"""Two islands that train a run, in a ledger that is in memory."""

from dataclasses import replace

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.islands.island_roster import IslandRoster
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.protocol.frames import Progressed
from tests.support.cluster.building import CYCLE, outer_step, training
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.term_parts import FakeMachines, FakeTerm, services_of

A, B = NodeId("a"), NodeId("b")
ONE, OTHER = CycleId("1" * 16), CycleId("2" * 16)
STEP = replace(outer_step(0), batches={ONE: 4, OTHER: 4}, islands=(), left_out={})


class TwoIslands:
    """A run's islands on a machine each, and what a leader coordinates them with."""

    def __init__(self, *taken: OuterStepTaken, batch_sequences: int = 8) -> None:
        self.term = FakeTerm(A)
        self.term.know(CYCLE, training(), *(taken or (STEP,)))
        for island, node in ((ONE, A), (OTHER, B)):
            self.term.know(island, replace(training(), cycle=island, parent=CYCLE, nodes=(node,)))
        self.machines = FakeMachines(answering=(A, B))
        self.services = services_of(self.term, machines=self.machines)
        self.board, self.pseudo_gradients = self.services.board, self.services.pseudo_gradients
        self.of = spec(batch_sequences)
        self.roster = IslandRoster(
            self.term, self.machines, self.board, self.pseudo_gradients, self.of
        )

    def leave(self, *nodes: NodeId) -> None:
        """Let these machines be gone, and no others."""
        self.machines.alive = lambda: frozenset({A, B} - {*nodes})

    def train(self, island: CycleId, number: int) -> None:
        """Let an island train with weights that contain this outer step."""
        self.board.begin(island, 1, Phase.TRAIN, 0.0, part_of=CYCLE)
        reading = Progressed(0, 100, "steps", {"outer_step": float(number)})
        self.board.advance(island, "train", reading, 0.0)
        self.pseudo_gradients.set_training(island, is_training=True)


def spec(batch_sequences: int) -> TrainingSpec:
    return TrainingSpec(
        started=training(),
        settings=RunSettings.parse({**training().settings, "island_nodes": "mlx:a torch:b"}),
        shape=tiny_shape(),
        plan=TrainPlan.model_construct(steps=100, batch_sequences=batch_sequences),
        data=TrainRound(ArtifactId("d"), ArtifactId("t")),
    )


def final_of(island: CycleId, artifact: str) -> CheckpointCommitted:
    """The last weights, as an island records them."""
    return CheckpointCommitted(
        island, 1, "", ArtifactId(artifact), 4, 100, 9, 9, 2.5, is_final=True
    )
