"""How a service stands: the document of `jupiterd service status`, and its lines for people.

Owns their form. Doesn't know which commands report it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.formats import duration
from jupiterd.service.service_request import Scope


@dataclass(frozen=True)
class ServiceStatus:
    """One service, as systemd or launchd reports it."""

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
    status_text: str = ""
    """What the daemon reports of itself, see sd_notify(3); empty: nothing."""
    restarts: int | None = None
    """How often it was started again since somebody did."""
    state_dir: Path | None = None
    lingers: bool | None = None
    """A user's own goes on without anybody being logged in; None: that is no question here."""


def status_document(current: ServiceStatus, since: str | None) -> dict[str, Any]:
    """Return the keys of a service; since: when it was started, in wall time."""
    return {
        "manager": current.manager,
        "scope": str(current.scope),
        "file": str(current.file),
        "installed": current.is_installed,
        "enabled": current.is_enabled,
        "running": current.is_running,
        "state": current.state,
        "pid": current.pid,
        "since": since,
        "running_s": None if current.running_s is None else round(current.running_s, 3),
        "told": current.status_text or None,
        "restarts": current.restarts,
        "state_dir": None if current.state_dir is None else str(current.state_dir),
        "lingers": current.lingers,
    }


def status_lines(current: ServiceStatus, since: str | None) -> Sequence[str]:
    """Return what people read."""
    if not current.is_installed:
        return (f"not installed: {current.file} isn't there",)
    long = "" if current.running_s is None else f" ({duration(current.running_s)})"
    rows = (
        ("service", f"{current.manager}, {current.scope}"),
        ("state", current.state + (f", process {current.pid}" if current.pid else "")),
        ("since", f"{since}{long}" if since else ""),
        ("says", current.status_text),
        ("starts", _starts(current)),
        ("restarts", "" if not current.restarts else str(current.restarts)),
        ("file", str(current.file)),
        ("state folder", str(current.state_dir or "")),
    )
    return [f"{name:<14}{value}" for name, value in rows if value]


def _starts(current: ServiceStatus) -> str:
    if not current.is_enabled:
        return "only when told to"
    if current.scope is Scope.SYSTEM or current.lingers:
        return "with the machine"
    return "when its user logs in, and ends when they log out"
