"""What installing and uninstalling consist of: files that are written or removed, programs run.

Owns carrying them out, or describing them. Doesn't know what they are for.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from jupiterd.errors import ServiceError
from jupiterd.locations import DAEMON_LOG, LOGS

TIMEOUT_S = 600.0
"""Longer than a service may take to start, or to save what it trains and stop."""

LOOK_S = 0.2


@dataclass(frozen=True)
class Write:
    """A file is to have this content."""

    path: Path
    content: bytes

    def description(self) -> str:
        """Say in words what it does."""
        return f"write {self.path}"

    def carry_out(self) -> None:
        """Write it whole, or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.new")
        beside.write_bytes(self.content)
        beside.chmod(0o644)
        beside.replace(self.path)


@dataclass(frozen=True)
class MakeFolder:
    """A folder is to be there, of somebody."""

    path: Path
    owner: str

    def description(self) -> str:
        """Say in words what it does."""
        return f"make the folder {self.path} of {self.owner}"

    def carry_out(self) -> None:
        """Make it; one that is there stays as it is."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True, mode=0o700)
            shutil.chown(self.path, self.owner)


@dataclass(frozen=True)
class Remove:
    """A file is to go."""

    path: Path

    def description(self) -> str:
        """Say in words what it does."""
        return f"remove {self.path}"

    def carry_out(self) -> None:
        """Remove it."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()


@dataclass(frozen=True)
class Run:
    """A program is to be run."""

    command: tuple[str, ...]
    may_fail: bool = False

    def description(self) -> str:
        """Say in words what it does."""
        return f"run {shlex.join(self.command)}"

    def carry_out(self) -> None:
        """Run it.

        Raises:
            ServiceError: it failed, with the first line of its errors.
        """
        ran = run_captured(self.command)
        if ran is None:
            raise ServiceError(f"{self.command[0]} isn't there", "install it, or run: jupiterd")
        if ran.returncode and not self.may_fail:
            errors = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
            why = errors[0] if errors else f"it ended with status {ran.returncode}"
            raise ServiceError(f"{shlex.join(self.command)}: {why}")


@dataclass(frozen=True)
class WaitUntilGone:
    """A program is to be run again and again until it fails: what it asks for has gone then."""

    command: tuple[str, ...]
    within_s: float

    def description(self) -> str:
        """Say in words what it does."""
        return f"wait until {shlex.join(self.command)} finds nothing any more"

    def carry_out(self) -> None:
        """Wait for that.

        Raises:
            ServiceError: it took too long.
        """
        for _ in range(round(self.within_s / LOOK_S)):
            ran = run_captured(self.command)
            if ran is None or ran.returncode:
                return
            Event().wait(LOOK_S)
        raise ServiceError(f"it didn't end within {self.within_s:g} s")


Step = Write | MakeFolder | Remove | Run | WaitUntilGone


def carry_out(steps: Sequence[Step]) -> None:
    """Do one after the other; the first that fails is the last.

    Raises:
        ServiceError: one of them failed.
    """
    for step in steps:
        try:
            step.carry_out()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ServiceError(f"couldn't {step.description()}: {reason}") from error


def run_captured(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Return what a program says, in plain words whatever the language; None: it isn't there.

    Raises:
        ServiceError: it takes far too long.
    """
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0"},
        )
    except subprocess.TimeoutExpired as error:
        raise ServiceError(f"{shlex.join(command)} took over {TIMEOUT_S:g} s") from error
    except OSError:
        return None


def tail_command(state_dir: Path, lines: int, *, follows: bool) -> tuple[str, ...]:
    """Return the command that shows the end of the daemon's own log."""
    log = state_dir / LOGS / DAEMON_LOG
    return ("tail", "-n", str(lines), *(("-F",) if follows else ()), str(log))


RunProgram = Callable[[Sequence[str]], subprocess.CompletedProcess[str] | None]
"""Runs a program and returns what it says; `run_captured`, unless a test answers."""
