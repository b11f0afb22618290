"""The state of the last finished step, which survives the gang that made it.

Owns when that state is whole: never in the middle of an optimizer update. Doesn't know how it is
written, or who asks for it. The one who asks is another thread: the main one may hang in a
collective for ever, and its weights are those of the last finished step then.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from jupiterd.protocol.frames import CheckpointWritten

Write = Callable[[int], CheckpointWritten | None]
"""Writes the weights as they are, which contain so many steps; None: there is nothing to write."""


class LastStepSnapshot:
    """Counts the steps that the weights contain, and has them written down when asked."""

    def __init__(self, first_step: int, write: Write) -> None:
        self._first_step = first_step
        self._step = first_step
        self._write = write
        self._is_whole = True
        self._lock = threading.Lock()
        self.before_update: Callable[[], None] = lambda: None
        """Called before each update: it waits until what copies the weights is done."""

    @contextmanager
    def updating(self) -> Generator[None]:
        """Be entered around each optimizer update; nothing is written meanwhile."""
        self.before_update()
        with self._lock:
            self._is_whole = False
            yield
            self._step += 1
            self._is_whole = True  # not where the update has failed half-way

    @contextmanager
    def jumping(self, to_step: int) -> Generator[None]:
        """Be entered around what replaces the weights by those of another step."""
        self.before_update()
        with self._lock:
            self._is_whole = False
            yield
            self._step = to_step
            self._is_whole = True

    def save(self, after_step: int) -> CheckpointWritten | None:
        """Write the last finished step, if it is a later one than that; updates wait."""
        with self._lock:
            if not self._is_whole or self._step <= max(after_step, self._first_step):
                return None
            return self._write(self._step)
