"""One piece of work of a phase, and what came of it.

Owns the value types that the planner makes, a node runs and the ledger records.
Doesn't know who runs it, or how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jupiterd.ids import ArtifactId
from jupiterd.protocol.frames import Scalar

PREVIOUS = "previous_"
"""So the names of inputs begin that only save work: an item is done without them, too."""

HALVINGS = "halvings"
"""The parameter that says how often the number of texts or sequences that are in memory at a time
is halved: so often memory ran out on that node."""


class Phase(StrEnum):
    """The phases of a round, in their order."""

    COLLECT = "collect"
    GENERATE = "generate"
    FILTER = "filter"
    PACK = "pack"
    TRAIN = "train"
    EVALUATE = "evaluate"
    GATE = "gate"


@dataclass(frozen=True)
class WorkItem:
    """Something one worker process can do by itself; doing it twice gives the same outputs."""

    id: str
    """Unique in the cycle and the same whoever plans it, such as `r1/filter/0`."""
    phase: Phase
    task: str
    """The worker module that does it."""
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: Mapping[str, ArtifactId] = field(default_factory=dict[str, ArtifactId])


@dataclass(frozen=True)
class WorkResult:
    """What a finished item leaves behind."""

    outputs: Mapping[str, ArtifactId]
    counts: Mapping[str, float] = field(default_factory=dict[str, float])
    summary: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
