"""The facts by which people let a cycle go on beyond its end, or see why it ended.

Owns what each says. Doesn't know what it leads to (`lifecycle`), or who asked for it.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.ids import CycleId


@dataclass(frozen=True)
class CycleExtended:
    """Setting, one for each cycle: how many rounds it has in all, more than it began with."""

    TYPE: ClassVar[str] = "CycleExtended"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    rounds: int
    """Of all, those that are over included."""
    edit: int


@dataclass(frozen=True)
class CycleRevived:
    """Withdrawal: why it failed before this entry counts no more; it goes on from what it has."""

    TYPE: ClassVar[str] = "CycleRevived"
    VERSION: ClassVar[int] = 1
    cycle: CycleId


@dataclass(frozen=True)
class FailureDismissed:
    """Set fact: people have seen why it failed before this entry; no alarm says so any more."""

    TYPE: ClassVar[str] = "FailureDismissed"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    node: str = ""
    """On whose machine somebody said so; empty in those of before."""


LifecycleFact = CycleExtended | CycleRevived | FailureDismissed
