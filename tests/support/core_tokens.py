"""Tokens for the cores of this machine: tests that run at once don't take more than there are.

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
LOOK_S = 0.02


class CoreTokens:
    """The tokens that lie in a folder, for all processes that know it."""

    def __init__(self, folder: Path, cores: int) -> None:
        self._gate = folder / "gate"
        self._files = [folder / str(number) for number in range(cores * OF_A_CORE)]

    @contextlib.contextmanager
    def taken(self, count: int) -> Generator[None]:
        """Wait for so many, or for all there are, and have them; whoever came first is served."""
        with contextlib.ExitStack() as taken:
            with self._gate.open("wb") as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
                for _ in range(min(count, len(self._files))):
                    taken.enter_context(self._free())
            yield

    def _free(self) -> BufferedWriter:
        while True:
            for path in self._files:
                token = path.open("wb")
                try:
                    fcntl.flock(token, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    token.close()
                else:
                    return token
            threading.Event().wait(LOOK_S)  # several files can't be waited for at once
