"""What a gang trains: the round of a cycle or a run, its model and its plan.

Owns these values. Doesn't know who trains it.
"""

from dataclasses import dataclass

from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.ids import CycleId


@dataclass(frozen=True)
class TrainedRound:
    """One round's training."""

    cycle: CycleId
    round: int
    shape: ModelShape
    plan: TrainPlan
    parent: str = ""
    """The run of which an island is trained, or empty."""

    @property
    def step_tokens(self) -> int:
        """How many tokens one step trains on."""
        return self.plan.batch_sequences * self.shape.seq_len
