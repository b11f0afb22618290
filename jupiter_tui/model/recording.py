"""The form of a recording: the messages that the dashboard received, one JSON object a line.

Pure. Owns that form, in which each message has the seconds since the first. Doesn't know files or
clocks.
"""

import json
from dataclasses import dataclass
from typing import Any

from jupiterd.client.watch import Delta, Heartbeat, Link, LinkChanged, Snapshot, WatchMessage
from jupiterd.errors import UsageError

FORM = "jupiter-tui/v1"
"""The value of `form` in the first line."""


@dataclass(frozen=True)
class RecordedMessage:
    """One message about a document, `at_s` seconds after the first one of the recording."""

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


def recorded_line(recorded: RecordedMessage) -> str:
    """Return a message as a line."""
    return json.dumps(
        {"at_s": round(recorded.at_s, 3), "noun": recorded.noun, **_plain_message(recorded.message)}
    )


def parsed_line(line: str) -> RecordedMessage:
    """Return the message of a line.

    Raises:
        UsageError: it is none.
    """
    try:
        row = json.loads(line)
        return RecordedMessage(float(row["at_s"]), str(row["noun"]), _message(row))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError("a line of the recording is damaged") from error


def _plain_message(message: WatchMessage) -> dict[str, Any]:
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
            link_fields = str(row["reason"]), float(row["retry_in_s"]), str(row.get("hint", ""))
            return LinkChanged(Link(row["link"]), *link_fields)
