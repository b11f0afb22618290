"""Runs one read-only command of the operating system, within a time limit.

Owns the process and its environment. Doesn't interpret the output. Callers run only commands that
change nothing.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TIMEOUT_S: Final = 5.0
SYSTEM_FOLDERS: Final = ("/usr/sbin", "/sbin", "/usr/local/sbin")
"""Folders of system commands that a user's PATH often lacks."""


@dataclass(frozen=True)
class CommandOutput:
    """The output and the exit status of a command."""

    exit_code: int | None
    """None: there is no such command, or it hasn't ended in time."""
    text: str = ""
    """The standard output."""
    errors: str = ""

    @property
    def has_succeeded(self) -> bool:
        """Return whether the exit status is 0."""
        return self.exit_code == 0


NOT_RUN: Final = CommandOutput(None)


def run_command(*command: str) -> CommandOutput:
    """Run a command and return its output; raise no error if it fails or doesn't exist."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
    try:
        done = subprocess.run(
            _found(command, path),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "PATH": path},
        )
    except (OSError, subprocess.SubprocessError) as error:
        return CommandOutput(None, errors=str(error))
    return CommandOutput(done.returncode, done.stdout, done.stderr)


def _found(command: Sequence[str], path: str) -> list[str]:
    import shutil

    return [shutil.which(command[0], path=path) or command[0], *command[1:]]
