"""The daemon's log: one event name and key=value pairs on a line.

Owns the format, and that nothing in a line steers a terminal or goes on for ever: others have a
hand in what is logged. Doesn't know what that is. The same lines go to a bounded file, with
their day.
"""

import logging
import sys
from contextlib import suppress
from pathlib import Path

from jupiterd.formats import printable
from jupiterd.processes.log_file import LogFile

MAX_CHARACTERS = 500
"""Of one value, or of one line of a traceback."""

MAX_TRACE_LINES = 60

TIME = "%H:%M:%S"
DAY_AND_TIME = f"%Y-%m-%d {TIME}"
"""A file is read days later."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class KeyValueFormatter(logging.Formatter):
    """Time, level, event, then the record's extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback below it where there is one."""
        pairs = " ".join(
            f"{name}={_quoted(value)}"
            for name, value in vars(record).items()
            if name not in _STANDARD
        )
        stamp = self.formatTime(record, self.datefmt or TIME)
        event = _plain(record.getMessage())
        line = f"{stamp} {record.levelname.lower():7} {event} {pairs}".rstrip()
        if record.exc_info:
            trace = self.formatException(record.exc_info).splitlines()[-MAX_TRACE_LINES:]
            line = "\n".join([line, *map(_plain, trace)])
        return line


def start_logging(level: int = logging.INFO, *, is_quiet: bool = False) -> None:
    """Send everything of Jupiter's at `level` or above to stderr, and warnings of libraries.

    Quietly, only errors: for whoever keeps that in a file without bounds.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.ERROR if is_quiet else logging.NOTSET)
    handler.setFormatter(KeyValueFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("jupiterd").setLevel(level)


class FileHandler(logging.Handler):
    """Writes every line to a bounded file; a disk that is full mustn't stop anything."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = LogFile(path)
        self.setFormatter(KeyValueFormatter(datefmt=DAY_AND_TIME))

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        with suppress(OSError):
            self._file.append(f"{self.format(record)}\n".encode("utf-8", "replace"))


def log_to_file(path: Path) -> None:
    """Write what is logged from now on to a file, too."""
    logging.getLogger().addHandler(FileHandler(path))


def _quoted(value: object) -> str:
    text = _cut(str(value))
    is_plain = text.isprintable() and text and not any(sign in text for sign in ' ="')
    return text if is_plain else repr(text)


def _plain(text: str) -> str:
    """Return one line, with what can't be printed as `?`."""
    return printable(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
