"""Writing a recording of the dashboard's messages, and playing one.

Owns the file and the pauses between messages. Doesn't know what the messages say.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from jupiter_tui.model.recording import (
    RecordedMessage,
    check_first_line,
    first_line,
    parsed_line,
    recorded_line,
)
from jupiterd.client.watch import Link, LinkChanged, WatchMessage
from jupiterd.errors import DiskFullError, UsageError

LONGEST_PAUSE_S = 5.0
"""Nobody wants to watch a night in which nothing happened."""

Deliver = Callable[[str, WatchMessage], None]


class Recorder:
    """Writes each message to a file; after the first failed write it writes no more."""

    def __init__(self, path: Path) -> None:
        """Begin a new file.

        Raises:
            UsageError: it can't be written, or is there already.
        """
        try:
            # Samples, addresses and log lines are nobody else's business.
            path.touch(mode=0o600, exist_ok=False)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        self._path: Path | None = path
        self._began_s: float | None = None
        self._write(first_line())

    def take(self, noun: str, message: WatchMessage, now_s: float) -> None:
        """Write a message down.

        Raises:
            DiskFullError: there is no room for it; raised once, and nothing is written after it.
        """
        if self._began_s is None:
            self._began_s = now_s
        self._write(recorded_line(RecordedMessage(now_s - self._began_s, noun, message)))

    def _write(self, line: str) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            self._path = None
            raise DiskFullError(f"the recording ends here: {error.strerror}") from error


async def play(path: Path, deliver: Deliver, speed: float) -> None:
    """Deliver the recorded messages with their pauses, `speed` times as fast, then a last STALE.

    A pause is at most LONGEST_PAUSE_S seconds.

    Raises:
        UsageError: the file is no recording, or is damaged.
    """
    at_s = 0.0
    for recorded in await asyncio.to_thread(_read, path):
        pause_s = min(recorded.at_s - at_s, LONGEST_PAUSE_S * speed) / speed
        await asyncio.sleep(max(pause_s, 0.0))
        at_s = recorded.at_s
        deliver(recorded.noun, recorded.message)
    deliver("status", LinkChanged(Link.STALE, "the recording ends here"))


def check_recording(path: Path) -> None:
    """Raise UsageError where a file is no recording."""
    next(_lines(path), None)


def _read(path: Path) -> list[RecordedMessage]:
    return list(_lines(path))


def _lines(path: Path) -> Iterator[RecordedMessage]:
    try:
        with path.open(encoding="utf-8") as file:
            check_first_line(file.readline())
            yield from map(parsed_line, file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
