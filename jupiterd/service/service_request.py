"""The service that a command line requests: its scope, its user, its program and the options.

Owns these values. Doesn't know systemd or launchd.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SYSTEM_USER = "jupiter"
"""Whom the service of a whole Linux machine runs as, where nobody else is named."""

SYSTEM_STATE_DIR = Path("/var/lib/jupiter")
"""Its state folder: the same after every upgrade, whoever it runs as."""


class Scope(StrEnum):
    """Whose service it is."""

    USER = "user"
    """One person's: a user unit of systemd, or an agent of launchd."""
    SYSTEM = "system"
    """The machine's: a system unit of systemd, or a daemon of launchd."""


@dataclass(frozen=True)
class ServiceRequest:
    """A service to install."""

    scope: Scope
    program: tuple[str, ...]
    """What starts jupiterd, by its whole path."""
    arguments: tuple[str, ...]
    """Its options, without that of the state folder."""
    state_dir: Path | None
    """Where its state lies; None: where a daemon of that user keeps it anyway."""
    user: str
    """Whom it runs as."""
    home: Path
    """That user's home folder."""
