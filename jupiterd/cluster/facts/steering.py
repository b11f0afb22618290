"""What people decide about a cycle's generators.

Owns the fact. What follows from it is `cycle.generation.promotion`'s.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.ids import ArtifactId, CycleId


@dataclass(frozen=True)
class StudentSteered:
    """Command, one for each round and student: it comes into force after the round, or goes."""

    TYPE: ClassVar[str] = "StudentSteered"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    after_round: int
    student: ArtifactId
    is_promoted: bool
    """False: it is rolled back."""
    edit: int
