"""The service under systemd: what installs and removes it, and how it stands.

Owns where the files go, the commands for systemctl and reading its answers. Doesn't know what is in
the unit.
"""

import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupiterd.errors import ServiceError
from jupiterd.locations import default_state_dir
from jupiterd.service.service_request import SYSTEM_STATE_DIR, SYSTEM_USER, Scope, ServiceRequest
from jupiterd.service.service_status import ServiceStatus
from jupiterd.service.steps import (
    MakeFolder,
    Remove,
    Run,
    RunProgram,
    Step,
    Write,
    run_captured,
    tail_command,
)
from jupiterd.service.unit import NAME, state_dir_in, sysusers_text, unit_text

SYSTEM_FOLDER: Final = Path("/etc/systemd/system")
SYSUSERS: Final = Path("/etc/sysusers.d/jupiter.conf")
BOOTED: Final = Path("/run/systemd/system")
"""There exactly where systemd runs the machine; see sd_booted(3)."""

LINGERING: Final = Path("/var/lib/systemd/linger")

BY_HAND: Final = (
    "start it with: jupiterd; in a container, its engine starts it again: --restart on-failure"
)

_SHOWN: Final = (
    "LoadState,ActiveState,SubState,UnitFileState,MainPID,ActiveEnterTimestampMonotonic,"
    "StatusText,NRestarts"
)


class Systemd:
    """One unit: a user's own, or the machine's."""

    name = "systemd"

    def __init__(
        self,
        scope: Scope,
        run_program: RunProgram = run_captured,
        environment: Mapping[str, str] = os.environ,
        booted: Path = BOOTED,
    ) -> None:
        self.scope = scope
        self._run_program = run_program
        self._environment = environment
        self._booted = booted
        self._systemctl = ("systemctl", *(() if scope is Scope.SYSTEM else ("--user",)))

    @property
    def file(self) -> Path:
        """Return where the unit file lies."""
        return self._folder / NAME

    @property
    def _folder(self) -> Path:
        if self.scope is Scope.SYSTEM:
            return SYSTEM_FOLDER
        kept = self._environment.get("XDG_CONFIG_HOME", "")
        base = Path(kept) if kept.startswith("/") else Path.home() / ".config"
        return base / "systemd" / "user"

    def text(self, request: ServiceRequest) -> bytes:
        """Return the unit file."""
        return unit_text(request).encode()

    def require(self) -> None:
        """Raise ServiceError where nobody would start the unit."""
        if self.scope is Scope.SYSTEM and not self._booted.is_dir():
            raise ServiceError("this machine isn't run by systemd", _hint())
        if self.scope is Scope.USER and not self._user_bus().exists():
            hint = "log in on the machine or by ssh, not by su or sudo; or install it for all: "
            hint += 'sudo "$(command -v jupiterd)" service install'
            is_booted = self._booted.is_dir()
            raise ServiceError(
                "systemd runs nothing for this user here", hint if is_booted else _hint()
            )

    def _user_bus(self) -> Path:
        default = f"/run/user/{os.getuid()}"
        return Path(self._environment.get("XDG_RUNTIME_DIR") or default) / "systemd" / "private"

    def install(
        self, request: ServiceRequest, current: ServiceStatus, *, is_outdated: bool = False
    ) -> list[Step]:
        """Return the steps after which it starts with the machine, and runs as requested."""
        text = self.text(request)
        is_new = not self.file.is_file() or self.file.read_bytes() != text
        steps: list[Step] = [*self._user_steps(request)]
        if is_new:
            steps += [Write(self.file, text), Run((*self._systemctl, "daemon-reload"))]
        steps.append(Run((*self._systemctl, "enable", NAME)))
        verb = "restart" if (is_new or is_outdated) and current.is_running else "start"
        return [*steps, Run((*self._systemctl, verb, NAME))]

    def _user_steps(self, request: ServiceRequest) -> list[Step]:
        if self.scope is Scope.USER:
            return []
        steps: list[Step] = []
        if request.user == SYSTEM_USER:
            steps += [Write(SYSUSERS, sysusers_text().encode())]
            steps += [Run(("systemd-sysusers", SYSUSERS.name))]
        if request.state_dir not in (None, SYSTEM_STATE_DIR):
            steps += [MakeFolder(request.state_dir, request.user)]
        return steps

    def uninstall(self) -> list[Step]:
        """Return the steps that end it and remove its file; state and user stay."""
        steps: list[Step] = [
            Run((*self._systemctl, "disable", "--now", NAME), may_fail=True),
            Remove(self.file),
        ]
        if self.scope is Scope.SYSTEM:
            steps.append(Remove(SYSUSERS))
        return [*steps, Run((*self._systemctl, "daemon-reload"), may_fail=True)]

    def status(self) -> ServiceStatus:
        """Return how it stands; without systemd, only whether its file is there."""
        is_there = self.file.is_file()
        ran = self._run_program((*self._systemctl, "show", NAME, f"--property={_SHOWN}"))
        lines = [] if ran is None else ran.stdout.splitlines()
        properties = {name: value for name, _, value in (line.partition("=") for line in lines)}
        active = properties.get("ActiveState", "")
        is_running = active in ("active", "reloading", "activating", "deactivating")
        entered_s = int(properties.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
        return ServiceStatus(
            manager=self.name,
            scope=self.scope,
            file=self.file,
            is_installed=is_there,
            is_enabled=properties.get("UnitFileState", "").startswith("enabled"),
            is_running=is_running,
            state=f"{active} ({properties.get('SubState', '')})" if active else "unknown",
            pid=int(properties.get("MainPID") or 0) or None,
            running_s=time.monotonic() - entered_s if active == "active" and entered_s else None,
            status_text=properties.get("StatusText", ""),
            restarts=int(properties["NRestarts"]) if properties.get("NRestarts") else None,
            state_dir=self._state_dir() if is_there else None,
            lingers=self._lingers(),
        )

    def _state_dir(self) -> Path:
        return state_dir_in(self.file.read_text(encoding="utf-8")) or default_state_dir()

    def _lingers(self) -> bool | None:
        if self.scope is Scope.SYSTEM:
            return None
        return (LINGERING / pwd.getpwuid(os.getuid()).pw_name).exists()

    def log_command(self, lines: int, *, follows: bool) -> tuple[str, ...]:
        """Return the command that shows the unit's journal, else the log file."""
        unit = f"--user-unit={NAME}" if self.scope is Scope.USER else f"--unit={NAME}"
        ran = self._run_program(("journalctl", "--quiet", unit, "--lines=1", "--output=cat"))
        if ran is None or not ran.stdout.strip():  # kept in memory, a journal is root's alone
            return tail_command(self._state_dir(), lines, follows=follows)
        return ("journalctl", unit, f"--lines={lines}", *(("--follow",) if follows else ()))

    def note(self, request: ServiceRequest) -> str:
        """Return what people must still do or know; empty: nothing."""
        if self.scope is Scope.SYSTEM:
            jupiterctl = Path(request.program[0]).with_name("jupiterctl")
            command = f"sudo {jupiterctl} --state-dir {request.state_dir} status"
            return f"it runs as {request.user}; talk to it with: {command}"
        if self._lingers():
            return ""
        reason = "it ends when you log out, and begins when you log in; to let it run without you"
        return f"{reason}: loginctl enable-linger {request.user}"


def _hint() -> str:
    if "microsoft" in os.uname().release.lower():
        return (
            "write systemd=true below [boot] in /etc/wsl.conf, then run in Windows: wsl --shutdown"
        )
    return BY_HAND
