"""Server-sent events out of the bytes of an HTTP answer, however these were split.

Pure. Owns the form of a stream as the HTML standard has it (section 9.2.6): lines that end with LF,
CR or both, fields, comments, and an empty line after each event. Doesn't know what an event says.
"""

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """What one event brings, or what a comment between events says."""

    data: str = ""
    comment: str = ""


class EventStream:
    """The reader of one stream: takes bytes as they come, and returns what they complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_first_line = True
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the events and comments that are whole with these bytes.

        An event is whole with the empty line after it, so one that a stream breaks off is never
        returned.
        """
        text = self._rest + data
        # A CR at the end may be half of a CRLF: it waits for the byte after it.
        usable = len(text) - text.endswith(b"\r")
        *lines, last = _LINE_END.split(text[:usable])
        self._rest = last + text[usable:]
        found = (self._take(line) for line in lines)
        return [event for event in found if event is not None]

    def end(self) -> list[Event]:
        """Return what the end of the stream completes: a CR that waited for its LF."""
        waiting, self._rest = self._rest, b""
        if not waiting.endswith(b"\r"):
            return []
        event = self._take(waiting[:-1])
        return [] if event is None else [event]

    def _take(self, raw: bytes) -> Event | None:
        if self._is_first_line:
            raw, self._is_first_line = raw.removeprefix(_BYTE_ORDER_MARK), False
        line = raw.decode("utf-8", "replace")
        if not line:
            return self._dispatched()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            return Event(comment=value)
        if name == "data":
            self._data.append(value)
        return None

    def _dispatched(self) -> Event | None:
        lines, self._data = self._data, []
        return Event(data="\n".join(lines)) if lines else None
