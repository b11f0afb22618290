"""The service under launchd, on a Mac: what installs and removes it, and how it stands.

Owns where the file goes, and what launchctl is told and says. Doesn't know what is in it.
"""

import os
import re
from pathlib import Path
from typing import Final

import psutil

from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.service.asked import Asked, Scope
from jupiterd.service.property_list import LABEL, STOP_S, property_list, state_dir_in, state_dir_of
from jupiterd.service.seen import Seen
from jupiterd.service.steps import (
    Ask,
    MakeFolder,
    Outlast,
    Remove,
    Run,
    Step,
    Write,
    output_of,
    tail_of,
)

DAEMONS: Final = Path("/Library/LaunchDaemons")
AGENTS: Final = Path("Library/LaunchAgents")
"""In a home folder."""

AGENT_NOTE: Final = (
    "macOS 15 and newer may refuse an agent the local network without a word: `jupiterd doctor` "
    "tells; without --agent it is a daemon, which may always use it"
)

SPARE_S: Final = 10
"""How much longer than until launchd kills is waited for the end."""

_PID: Final = re.compile(r"^\s*pid = (\d+)$", re.MULTILINE)
_STATE: Final = re.compile(r"^\s*state = (.+)$", re.MULTILINE)
_RUNS: Final = re.compile(r"^\s*runs = (\d+)$", re.MULTILINE)


class Launchd:
    """One job: a user's agent, or the machine's daemon."""

    name = "launchd"

    def __init__(self, scope: Scope, ask: Ask = output_of, daemons: Path = DAEMONS) -> None:
        self.scope = scope
        self._ask = ask
        self._daemons = daemons
        self._domain = "system" if scope is Scope.SYSTEM else f"gui/{os.getuid()}"

    @property
    def file(self) -> Path:
        """Return where the property list lies."""
        folder = self._daemons if self.scope is Scope.SYSTEM else Path.home() / AGENTS
        return folder / f"{LABEL}.plist"

    def text(self, asked: Asked) -> bytes:
        """Return the property list."""
        return property_list(asked)

    def require(self) -> None:
        """Do nothing: it is on every Mac."""

    def install(self, asked: Asked, seen: Seen, *, is_outdated: bool = False) -> list[Step]:
        """Return what makes it be there, start with the machine, and run as asked from now on."""
        text = self.text(asked)
        is_same = self.file.is_file() and self.file.read_bytes() == text
        steps: list[Step] = []
        if self.scope is Scope.SYSTEM:
            steps.append(MakeFolder(state_dir_of(asked), asked.user))
        if is_same and seen.is_running and not is_outdated:
            return steps
        return [
            *steps,
            *self._out(),
            Write(self.file, text),
            Run(("launchctl", "enable", self._target)),
            Run(("launchctl", "bootstrap", self._domain, str(self.file))),
        ]

    def uninstall(self) -> list[Step]:
        """Return what ends it and takes its file away; its state stays."""
        return [*self._out(), Remove(self.file)]

    def seen(self) -> Seen:
        """Return how it stands."""
        content = self.file.read_bytes() if self.file.is_file() else b""
        ran = self._ask(("launchctl", "print", self._target))
        said = ran.stdout if ran is not None and not ran.returncode else ""
        pid, state, runs = (pattern.search(said) for pattern in (_PID, _STATE, _RUNS))
        return Seen(
            manager=self.name,
            scope=self.scope,
            file=self.file,
            is_installed=bool(content),
            is_enabled=bool(said),
            is_running=pid is not None,
            state=state[1] if state else "not loaded",
            pid=int(pid[1]) if pid else None,
            running_s=_running_s(int(pid[1])) if pid else None,
            restarts=max(int(runs[1]) - 1, 0) if runs else None,
            state_dir=state_dir_in(content),
        )

    def log_command(self, lines: int, *, follows: bool) -> tuple[str, ...]:
        """Return what shows the log in the state folder: launchd keeps none."""
        return tail_of(self.seen().state_dir or Path(), lines, follows=follows)

    def note(self, asked: Asked) -> str:  # noqa: ARG002 - systemd's has use for it
        """Return what is left for people to do, or to know."""
        return "" if self.scope is Scope.SYSTEM else AGENT_NOTE

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _out(self) -> list[Step]:
        """Return what ends it for certain: launchctl comes back before that, and starts nothing."""
        return [
            Run(("launchctl", "bootout", self._target), may_fail=True),
            Outlast(("launchctl", "print", self._target), STOP_S + SPARE_S),
        ]


def _running_s(pid: int) -> float | None:
    try:
        return max(0.0, wall_s() - psutil.Process(pid).create_time())
    except psutil.Error:
        return None
