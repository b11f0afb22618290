"""Writing checkpoints beside the training: the copy is taken at once, the disk comes later.

Owns the thread that writes. Doesn't know when a checkpoint is due or who hears of it. One is
written at a time, in the order in which they were taken; who takes the next too early waits.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from jupiterd.workers.train.checkpoint import Snapshot, write


class CheckpointSaver:
    """Writes what it is given, and keeps what went wrong until somebody looks."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = tokenizer
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def save(self, taken: Snapshot, folder: Path, written: Callable[[], None]) -> None:
        """Write a checkpoint in the background, and call `written` from there when it is whole.

        Raises:
            OSError: the one before couldn't be written; a full disk, mostly.
        """
        self.wait()
        arguments = (taken, folder, written)
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

    def _write(self, taken: Snapshot, folder: Path, written: Callable[[], None]) -> None:
        try:
            write(taken, folder, self._tokenizer)
            written()
        except Exception as error:  # noqa: BLE001 - of a thread: told where training sees it
            self._failure = error
