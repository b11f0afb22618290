"""Writing checkpoints beside the training: the copy is taken at once, the disk comes later.

Owns the thread that writes. Doesn't know when a checkpoint is due or who hears of it. One is
written at a time, in the order in which they were taken; who takes the next too early waits. One
that finds no room is left out, and the next has another try.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from jupiterd.workers.disk_room import is_out_of_room
from jupiterd.workers.train.checkpoints.checkpoint import TrainingSnapshot, write


class CheckpointSaver:
    """Writes what it is given, and keeps what went wrong until somebody looks."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = tokenizer
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def save(
        self,
        taken: TrainingSnapshot,
        folder: Path,
        written: Callable[[], None],
        unsaved: Callable[[], None] | None = None,
    ) -> None:
        """Write a checkpoint in the background, and call `written` from there when it is whole.

        Args:
            taken: what it holds.
            folder: where.
            written: called when it is whole.
            unsaved: called where the disk has no room for it; without it that is an error too.

        Raises:
            OSError: the one before couldn't be written.
        """
        self.wait()
        arguments = (taken, folder, written, unsaved)
        self._thread = threading.Thread(target=self._write, args=arguments, name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Wait until everything is written; raises what `save` would raise."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise what went wrong since somebody looked, if anything did."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _write(
        self,
        taken: TrainingSnapshot,
        folder: Path,
        written: Callable[[], None],
        unsaved: Callable[[], None] | None,
    ) -> None:
        try:
            write(taken, folder, self._tokenizer)
            written()
        except Exception as error:  # noqa: BLE001 - of a thread: told where training sees it
            if unsaved is not None and is_out_of_room(error):
                unsaved()
            else:
                self._failure = error
