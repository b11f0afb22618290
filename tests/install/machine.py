"""A new user's machine for a test of the installer: an empty home, and a Python.

Owns running the installer and what it has installed there. Doesn't know what any test expects.
"""

import contextlib
import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path

from tests.install.packages import ROOT, bare_surroundings, python_with

SCRIPT = ROOT / "installers" / "install.sh"
PROGRAMS = ("jupiterd", "jupiterctl", "jupiter-tui")

Done = subprocess.CompletedProcess[str]


class Machine:
    """A home folder, an empty folder to work in, and a Python to install on."""

    def __init__(self, folder: Path, linked: Path) -> None:
        folder.mkdir()
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        self.environment = bare_surroundings(self.home)
        self.python = python_with(linked, folder / "python3")
        self.bin = self.home / ".local" / "bin"
        self.root = self.home / ".local" / "share" / "jupiter"
        self.state = self.home / ".local" / "state" / "jupiter"

    def install(
        self,
        *options: str | Path,
        script: Path = SCRIPT,
        is_piped: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Done:
        """Run the installer, as a file or through a pipe."""
        text = script.read_text() if is_piped else ""
        before = ["sh", "-s", "--"] if is_piped else ["sh", script]
        return subprocess.run(
            [*before, *options],
            check=False,
            capture_output=True,
            text=True,
            input=text,
            cwd=self.work,
            env={**self.environment, **(environment or {})},
            start_new_session=True,  # no terminal to ask at
        )

    def install_at_terminal(self, answer: str, *options: str | Path) -> tuple[int, str]:
        """Run the installer where somebody types `answer`; return its status and the screen."""
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        running = subprocess.Popen(
            ["sh", SCRIPT, *options],
            stdin=subprocess.DEVNULL,  # as in a pipe: the terminal itself is asked
            stdout=theirs,
            stderr=theirs,
            cwd=self.work,
            env=self.environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(theirs)
        screen = _all_of(ours)
        return running.wait(), screen

    def install_from(self, source: Path, *options: str | Path) -> Done:
        """Install on this machine's Python, asking nothing."""
        return self.install(
            "--from", source, "--python", self.python, "--extra", "cpu", "--yes", *options
        )

    def run(self, program: str, *arguments: str | Path) -> Done:
        """Run an installed program in the empty folder."""
        return subprocess.run(
            [self.bin / program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.work,
            env=self.environment,
        )

    def files(self) -> list[str]:
        """Return everything below the home folder, links and empty folders as well."""
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))


def _all_of(terminal: int) -> str:
    """Read what a terminal shows until nobody writes to it any more, and close it."""
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as screen:
        while part := screen.read(4096):
            shown += part
    return shown.decode()
