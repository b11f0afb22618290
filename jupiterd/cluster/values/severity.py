"""How much something matters, of all that people are told: warnings, alerts, events.

Pure. Owns the levels and their order. Imports nothing: short commands wait for it.
"""

from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """How much it matters."""

    INFO = "info"
    """Good to know."""
    WARNING = "warning"
    """Work goes on, with less than there could be."""
    ERROR = "error"
    """Work can't go on."""


LEVELS: Final = tuple(map(str, Severity))
"""Their names, the least grave first."""


def rank(level: object) -> int:
    """Return how grave it is, the graver the higher; one that a newer version tells, the least."""
    return LEVELS.index(str(level)) if str(level) in LEVELS else 0
