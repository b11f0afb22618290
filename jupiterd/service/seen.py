"""How a service stands: the document of `jupiterd service status`, and its lines for people.

Owns their form. Doesn't know who was asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.formats import duration
from jupiterd.service.asked import Scope


@dataclass(frozen=True)
class Seen:
    """One service, as whoever keeps it says."""

    manager: str
    """systemd or launchd."""
    scope: Scope
    file: Path
    is_installed: bool = False
    is_enabled: bool = False
    """It starts with the machine, or when its user logs in."""
    is_running: bool = False
    state: str = "not installed"
    """In the manager's own words."""
    pid: int | None = None
    running_s: float | None = None
    told: str = ""
    """What the daemon says of itself."""
    restarts: int | None = None
    """How often it was started again since somebody did."""
    state_dir: Path | None = None
    lingers: bool | None = None
    """A user's own goes on without anybody being logged in; None: that is no question here."""


def document_of(seen: Seen, since: str | None) -> dict[str, Any]:
    """Return the keys of a service; since: when it was started, in wall time."""
    return {
        "manager": seen.manager,
        "scope": str(seen.scope),
        "file": str(seen.file),
        "installed": seen.is_installed,
        "enabled": seen.is_enabled,
        "running": seen.is_running,
        "state": seen.state,
        "pid": seen.pid,
        "since": since,
        "running_s": None if seen.running_s is None else round(seen.running_s, 3),
        "told": seen.told or None,
        "restarts": seen.restarts,
        "state_dir": None if seen.state_dir is None else str(seen.state_dir),
        "lingers": seen.lingers,
    }


def lines_of(seen: Seen, since: str | None) -> Sequence[str]:
    """Return what people read."""
    if not seen.is_installed:
        return (f"not installed: {seen.file} isn't there",)
    long = "" if seen.running_s is None else f" ({duration(seen.running_s)})"
    rows = (
        ("service", f"{seen.manager}, {seen.scope}"),
        ("state", seen.state + (f", process {seen.pid}" if seen.pid else "")),
        ("since", f"{since}{long}" if since else ""),
        ("says", seen.told),
        ("starts", _starts(seen)),
        ("restarts", "" if not seen.restarts else str(seen.restarts)),
        ("file", str(seen.file)),
        ("state folder", str(seen.state_dir or "")),
    )
    return [f"{name:<14}{value}" for name, value in rows if value]


def _starts(seen: Seen) -> str:
    if not seen.is_enabled:
        return "only when told to"
    if seen.scope is Scope.SYSTEM or seen.lingers:
        return "with the machine"
    return "when its user logs in, and ends when they log out"
