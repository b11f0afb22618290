"""A pty with a program in it, such as jupiter-tui.

Owns the process and both ends of the terminal. Doesn't know what a test looks for.
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.tui.screen import Screen

WAIT_S = 30.0
AGAIN_S = 5.0
LINES, COLUMNS = 40, 120
LEAVE_FULL_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"


@dataclass
class Terminal:
    """A pty with a program in it."""

    process: subprocess.Popen[bytes]
    ours: int
    theirs: int
    modes_before: list
    seen: bytes = b""
    screen: Screen = field(default_factory=lambda: Screen(COLUMNS, LINES))

    def read_for(self, seconds: float) -> None:
        """Read what comes in so much time."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self._read(left_s)

    def until(self, is_so: Callable[[str], bool]) -> str:
        """Return what stands on the screen as soon as it is as it should be."""
        self._read_until(is_so, time.monotonic() + WAIT_S)
        assert is_so(self.screen.text), f"the terminal stays at:\n{self.screen.text}"
        return self.screen.text

    def _read_until(self, is_so: Callable[[str], bool], end_s: float) -> None:
        while not is_so(self.screen.text) and time.monotonic() < end_s:
            self._read(0.05)

    def read_until(self, is_so: Callable[[bytes], bool]) -> None:
        """Read until what was written is as it should be."""
        end_s = time.monotonic() + WAIT_S
        while not is_so(self.seen):
            left_s = end_s - time.monotonic()
            ready, _, _ = select.select([self.ours], [], [], max(left_s, 0))
            assert ready, f"the terminal stays at: {self.seen!r}"
            self._take()

    def ended(self) -> int:
        """Read what comes until the program has ended; return its exit status."""
        end_s = time.monotonic() + WAIT_S
        while (status := self.process.poll()) is None:
            assert time.monotonic() < end_s, f"it doesn't end: {self.seen[-500:]!r}"
            self._read(0.05)
        while self._read(0.0):  # a pty hands out a few kilobytes at a time
            pass
        return status

    def _read(self, timeout_s: float) -> bool:
        """Read once; say whether there was anything."""
        is_there = bool(select.select([self.ours], [], [], timeout_s)[0])
        if is_there:
            self._take()
        return is_there

    def _take(self) -> None:
        data = os.read(self.ours, 65536)
        self.seen += data
        self.screen.feed(data)

    def press(self, key: bytes) -> None:
        """Type a key, and forget what was seen before."""
        self.seen = b""
        os.write(self.ours, key)

    def press_until(self, key: bytes, is_so: Callable[[str], bool]) -> None:
        """Type a key until it is heeded: Python's readline misses a Ctrl-C while it draws."""
        end_s = time.monotonic() + WAIT_S
        while not is_so(self.screen.text):
            assert time.monotonic() < end_s, f"the terminal stays at:\n{self.screen.text}"
            self.press(key)
            self._read_until(is_so, min(end_s, time.monotonic() + AGAIN_S))

    def close(self) -> None:
        """Let the terminal go, as when its window's program is killed; nobody sends a signal."""
        with Path(os.devnull).open("r+b") as nothing:
            os.dup2(nothing.fileno(), self.theirs)
            os.dup2(nothing.fileno(), self.ours)

    @property
    def is_restored(self) -> bool:
        """Say whether the terminal is as it was before the program."""
        is_left = LEAVE_FULL_SCREEN in self.seen and SHOW_CURSOR in self.seen
        return is_left and termios.tcgetattr(self.theirs) == self.modes_before


@contextmanager
def dashboard(
    state_dir: Path, *, columns: int = COLUMNS, lines: int = LINES, arguments: Sequence[str] = ()
) -> Iterator[Terminal]:
    """Run jupiter-tui in a terminal of its own; end it for certain."""
    command = ("-m", "jupiter_tui.main", "--state-dir", str(state_dir), *arguments)
    with in_terminal((sys.executable, *command), Screen(columns, lines), columns, lines) as found:
        yield found


@contextmanager
def in_terminal(
    command: Sequence[str], screen: Screen, columns: int, lines: int
) -> Iterator[Terminal]:
    """Run a program in a terminal of its own, with the screen that shows it; end it for certain."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    before = termios.tcgetattr(theirs)
    surroundings = os.environ | {"TERM": "xterm-256color", "GRPC_VERBOSITY": "DEBUG"}
    with subprocess.Popen(
        command,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={k: v for k, v in surroundings.items() if k not in {"COLUMNS", "LINES"}},
    ) as process:  # fmt: skip
        try:
            yield Terminal(process, ours, theirs, before, screen=screen)
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)
