"""The daemon's log: one event name and key=value pairs on a line.

Owns the format. Doesn't know what is logged.
"""

import logging
import sys

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
        stamp = self.formatTime(record, "%H:%M:%S")
        line = f"{stamp} {record.levelname.lower():7} {record.getMessage()} {pairs}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def start_logging(level: int = logging.INFO) -> None:
    """Send everything of Jupiter's at `level` or above to stderr, and warnings of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("jupiterd").setLevel(level)


def _quoted(value: object) -> str:
    text = str(value)
    return repr(text) if not text or any(sign in text for sign in ' ="\n') else text
