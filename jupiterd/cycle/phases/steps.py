"""What a round can need next.

Owns the kinds of steps. Doesn't know which one is due.
"""

from dataclasses import dataclass

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.ids import ArtifactId


@dataclass(frozen=True)
class RunItems:
    """Do these items; they don't depend on each other."""

    phase: Phase
    items: tuple[WorkItem, ...]
    total: int
    """Items of the phase, those done included."""


@dataclass(frozen=True)
class TrainRound:
    """Train on the round's manifest."""

    tokenizer: ArtifactId
    shards: ArtifactId
    held_out: tuple[ArtifactId, ...] = ()
    """Text for the loss at the end of each pass; nothing is decided by that."""


@dataclass(frozen=True)
class CloseRound:
    """Record the verdict and the end of the round."""

    verdict: WorkResult


Step = RunItems | TrainRound | CloseRound
