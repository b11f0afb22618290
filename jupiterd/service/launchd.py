"""The service under launchd, on a Mac: what installs and removes it, and how it stands.

Owns where the file goes, the commands for launchctl and reading its answers. Doesn't know what is
in the file.
"""

import os
import re
from pathlib import Path
from typing import Final

import psutil

from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.service.property_list import LABEL, STOP_S, property_list, state_dir_in, state_dir_of
from jupiterd.service.service_request import Scope, ServiceRequest
from jupiterd.service.service_status import ServiceStatus
from jupiterd.service.steps import (
    MakeFolder,
    Remove,
    Run,
    RunProgram,
    Step,
    WaitUntilGone,
    Write,
    run_captured,
    tail_command,
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

    def __init__(
        self, scope: Scope, run_program: RunProgram = run_captured, daemons: Path = DAEMONS
    ) -> None:
        self.scope = scope
        self._run_program = run_program
        self._daemons = daemons
        self._domain = "system" if scope is Scope.SYSTEM else f"gui/{os.getuid()}"

    @property
    def file(self) -> Path:
        """Return where the property list lies."""
        folder = self._daemons if self.scope is Scope.SYSTEM else Path.home() / AGENTS
        return folder / f"{LABEL}.plist"

    def text(self, request: ServiceRequest) -> bytes:
        """Return the property list."""
        return property_list(request)

    def require(self) -> None:
        """Do nothing: it is on every Mac."""

    def install(
        self, request: ServiceRequest, current: ServiceStatus, *, is_outdated: bool = False
    ) -> list[Step]:
        """Return the steps after which it starts with the machine, and runs as requested."""
        text = self.text(request)
        is_same = self.file.is_file() and self.file.read_bytes() == text
        steps: list[Step] = []
        if self.scope is Scope.SYSTEM:
            steps.append(MakeFolder(state_dir_of(request), request.user))
        if is_same and current.is_running and not is_outdated:
            return steps
        return [
            *steps,
            *self._end_steps(),
            Write(self.file, text),
            Run(("launchctl", "enable", self._target)),
            Run(("launchctl", "bootstrap", self._domain, str(self.file))),
        ]

    def uninstall(self) -> list[Step]:
        """Return what ends it and takes its file away; its state stays."""
        return [*self._end_steps(), Remove(self.file)]

    def status(self) -> ServiceStatus:
        """Return how it stands."""
        content = self.file.read_bytes() if self.file.is_file() else b""
        ran = self._run_program(("launchctl", "print", self._target))
        printed = ran.stdout if ran is not None and not ran.returncode else ""
        pid, state, runs = (pattern.search(printed) for pattern in (_PID, _STATE, _RUNS))
        return ServiceStatus(
            manager=self.name,
            scope=self.scope,
            file=self.file,
            is_installed=bool(content),
            is_enabled=bool(printed),
            is_running=pid is not None,
            state=state[1] if state else "not loaded",
            pid=int(pid[1]) if pid else None,
            running_s=_running_s(int(pid[1])) if pid else None,
            restarts=max(int(runs[1]) - 1, 0) if runs else None,
            state_dir=state_dir_in(content),
        )

    def log_command(self, lines: int, *, follows: bool) -> tuple[str, ...]:
        """Return what shows the log in the state folder: launchd keeps none."""
        return tail_command(self.status().state_dir or Path(), lines, follows=follows)

    def note(self, request: ServiceRequest) -> str:  # noqa: ARG002 - systemd's has use for it
        """Return what is left for people to do, or to know."""
        return "" if self.scope is Scope.SYSTEM else AGENT_NOTE

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _end_steps(self) -> list[Step]:
        """Return the steps that end it and wait for that.

        bootout returns before the job has ended, and until then bootstrap starts nothing.
        """
        return [
            Run(("launchctl", "bootout", self._target), may_fail=True),
            WaitUntilGone(("launchctl", "print", self._target), STOP_S + SPARE_S),
        ]


def _running_s(pid: int) -> float | None:
    try:
        return max(0.0, wall_s() - psutil.Process(pid).create_time())
    except psutil.Error:
        return None
