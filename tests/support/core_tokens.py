"""Tokens for the cores of this machine: tests that run at once take hardly more than there are.

Owns the files that stand for tokens, and waiting for some. A token stands for half a core, for a
test with daemons mostly waits for what they do, and a test that computes takes a whole core. Where
a process ends, however it does, its tokens are free again. Doesn't know any test.
"""

import contextlib
import fcntl
import threading
from collections.abc import Generator
from io import BufferedWriter
from pathlib import Path

OF_A_CORE = 2
SPARE = OF_A_CORE
"""For one computing test more than there are cores: even those wait for processes and disks."""

LOOK_S = 0.001
"""Thousands of tests take less than a hundredth of a second each."""


class CoreTokens:
    """The tokens that lie in a folder; for one thread, and one taking at a time."""

    def __init__(self, folder: Path, cores: int) -> None:
        self._gate = (folder / "gate").open("wb")
        count = cores * OF_A_CORE + SPARE
        self._tokens = [(folder / str(number)).open("wb") for number in range(count)]

    @contextlib.contextmanager
    def taken(self, count: int) -> Generator[None]:
        """Wait for so many, or for all there are, and have them; whoever came first is served."""
        wanted = min(count, len(self._tokens))
        ours: list[BufferedWriter] = []
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            while len(ours) < wanted:
                free = (token for token in self._tokens if token not in ours and _takes(token))
                if (token := next(free, None)) is not None:
                    ours.append(token)
                else:  # several files can't be waited for at once
                    threading.Event().wait(LOOK_S)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            yield
        finally:
            for file in (self._gate, *ours):
                fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the files, and of what is held."""
        for file in (self._gate, *self._tokens):
            file.close()


def _takes(token: BufferedWriter) -> bool:
    try:
        fcntl.flock(token, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
