"""The fact by which people say that they have seen an alarm.

Owns what it says. Doesn't know when it counts (`dismissals`).
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class AlarmDismissed:
    """Setting, one for each alarm: people have seen it, or it is over since they had."""

    TYPE: ClassVar[str] = "AlarmDismissed"
    VERSION: ClassVar[int] = 1
    key: str
    cause: str
    """What tells it from the next of its key; empty where it lasts until it is over."""
    is_over: bool
    edit: int
    node: str = ""
    """On whose machine somebody said so."""
