"""The file in which a machine keeps the micro batches that its ranks have found.

Owns reading and replacing it. Doesn't know what is in it (`cycle.micro_batches.known_choices`). No
file, or one that nobody can read, is one without choices.
"""

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupiterd.cycle.micro_batches.known_choices import Choice, choice_in, with_choice


class KeptChoices:
    """The choice for one key."""

    def __init__(self, path: str | None, key: str) -> None:
        """Take where the file is; None: nothing is kept."""
        self._path = None if path is None else Path(path)
        self._key = key

    def found(self, most: int) -> Choice | None:
        """Return the choice that is kept, made or only begun; None where none holds for so many."""
        return choice_in(self._text(), self._key, most)

    def keep(self, choice: Choice) -> None:
        """Write a choice down; a full disk only costs the next search."""
        if self._path is None:
            return
        try:
            with _alone(self._path.parent):
                self._replace(self._path, choice)
        except OSError as error:
            print(f"the micro batch isn't kept: {error}", file=sys.stderr)  # noqa: T201 - the log

    def _replace(self, path: Path, choice: Choice) -> None:
        beside = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            beside.write_text(with_choice(self._text(), self._key, choice), encoding="utf-8")
            beside.replace(path)
        except OSError:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise

    def _text(self) -> str:
        if self._path is not None:
            with suppress(OSError, UnicodeDecodeError):
                return self._path.read_text(encoding="utf-8")
        return ""


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keep the other ranks of this machine waiting: what one read, no other replaces meanwhile."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
