"""What the dashboard has heard, as lines of a file, so that a run can be looked at again.

Pure. Owns the form: JSON, one message a line, with the seconds since the first. Doesn't know files
or clocks.
"""

import json
from dataclasses import dataclass
from typing import Any

from jupiterd.client.watch import Delta, Heartbeat, Link, LinkChanged, Snapshot, WatchMessage
from jupiterd.errors import UsageError

FORM = "jupiter-tui/v1"
"""Said by the first line."""


@dataclass(frozen=True)
class Heard:
    """One message."""

    at_s: float
    noun: str
    message: WatchMessage


def first_line() -> str:
    """Return what a recording begins with."""
    return json.dumps({"form": FORM})


def check_first_line(line: str) -> None:
    """Raise UsageError unless a recording begins so."""
    try:
        is_ours = json.loads(line).get("form") == FORM
    except (ValueError, AttributeError):
        is_ours = False
    if not is_ours:
        raise UsageError(
            "the file is no recording of a dashboard", "jupiter-tui --record FILE makes one"
        )


def line_of(heard: Heard) -> str:
    """Return a message as a line."""
    return json.dumps({"at_s": round(heard.at_s, 3), "noun": heard.noun, **_told(heard.message)})


def heard_of(line: str) -> Heard:
    """Return the message of a line.

    Raises:
        UsageError: it is none.
    """
    try:
        row = json.loads(line)
        return Heard(float(row["at_s"]), str(row["noun"]), _message(row))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError("a line of the recording is damaged") from error


def _told(message: WatchMessage) -> dict[str, Any]:
    match message:
        case Snapshot(document=document):
            return {"snapshot": document}
        case Delta(changed=changed):
            return {"delta": changed}
        case Heartbeat(count=count):
            return {"heartbeat": count}
        case LinkChanged(link=link, reason=reason, retry_in_s=retry_in_s, hint=hint):
            return {"link": link, "reason": reason, "retry_in_s": retry_in_s, "hint": hint}


def _message(row: dict[str, Any]) -> WatchMessage:
    match row:
        case {"snapshot": dict(document)}:
            return Snapshot(document)
        case {"delta": dict(changed)}:
            return Delta(changed)
        case {"heartbeat": int(count)}:
            return Heartbeat(count)
        case _:
            told = str(row["reason"]), float(row["retry_in_s"]), str(row.get("hint", ""))
            return LinkChanged(Link(row["link"]), *told)
