"""The service under launchd, on a Mac: what installs and removes it, and how it stands.

Owns where the file goes, and what launchctl is told and says. Doesn't know what is in it.
"""

import os
import re
from pathlib import Path
from typing import Final

import psutil

from jupiterd.daemon.clock import wall_s
from jupiterd.daemon.service.asked import Asked, Scope
from jupiterd.daemon.service.property_list import (
    LABEL,
    property_list,
    state_dir_in,
    state_dir_of,
)
from jupiterd.daemon.service.seen import Seen
from jupiterd.daemon.service.steps import Ask, MakeFolder, Remove, Run, Step, Write, output_of
from jupiterd.locations import DAEMON_LOG, LOGS

DAEMONS: Final = Path("/Library/LaunchDaemons")
AGENTS: Final = Path("Library/LaunchAgents")
"""In a home folder."""

AGENT_NOTE: Final = (
    "macOS 15 and newer may refuse an agent the local network without a word: `jupiterd doctor` "
    "tells; without --agent it is a daemon, which may always use it"
)

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

    def install(self, asked: Asked, seen: Seen) -> list[Step]:
        """Return what makes it be there, start with the machine, and run as asked from now on."""
        text = self.text(asked)
        is_new = not self.file.is_file() or self.file.read_bytes() != text
        steps: list[Step] = []
        if self.scope is Scope.SYSTEM:
            steps.append(MakeFolder(state_dir_of(asked), asked.user))
        if is_new:
            steps += [self._out(), Write(self.file, text)] if seen.is_installed else []
            steps += [] if seen.is_installed else [Write(self.file, text)]
        steps.append(Run(("launchctl", "enable", self._target)))
        if is_new or not seen.is_running:
            steps.append(Run(("launchctl", "bootstrap", self._domain, str(self.file))))
        return steps

    def uninstall(self) -> list[Step]:
        """Return what ends it and takes its file away; its state stays."""
        return [self._out(), Remove(self.file)]

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
        folder = self.seen().state_dir or Path()
        follow = ("-F",) if follows else ()
        return ("tail", "-n", str(lines), *follow, str(folder / LOGS / DAEMON_LOG))

    def note(self, asked: Asked) -> str:  # noqa: ARG002 - systemd's has use for it
        """Return what is left for people to do, or to know."""
        return "" if self.scope is Scope.SYSTEM else AGENT_NOTE

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _out(self) -> Run:
        return Run(("launchctl", "bootout", self._target), may_fail=True)


def _running_s(pid: int) -> float | None:
    try:
        return max(0.0, wall_s() - psutil.Process(pid).create_time())
    except psutil.Error:
        return None
