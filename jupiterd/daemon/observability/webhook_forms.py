"""An alert as each kind of receiver wants it.

Owns the bodies and headers. Pure. Names in an alert come from other machines: nothing in them may
be taken for a command of the receiver's (a mention of everybody, a link).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.values.severity import Severity
from jupiterd.daemon.runtime.webhook import Form
from jupiterd.document_schema import SCHEMA

MAX_CHARACTERS: Final = 1500
"""Of a text."""

MAX_DISCORD_CHARACTERS: Final = 2000
DISCORDS_SIGNS: Final = r"[\\*_~`|>#\[\]()<@-]|:(?=//)"
"""What Discord takes for a form or a link, unless a backslash stands before it."""
DISCORD_WITHOUT_PREVIEWS: Final = 4
"""Its flag SUPPRESS_EMBEDS."""

NTFY_PRIORITY: Final = {Severity.INFO: "3", Severity.WARNING: "4", Severity.ERROR: "5"}
NTFY_TAG: Final = {
    Severity.INFO: "information_source",
    Severity.WARNING: "warning",
    Severity.ERROR: "rotating_light",
}
NTFY_TAG_OVER: Final = "white_check_mark"


@dataclass(frozen=True)
class Sender:
    """Who speaks."""

    cluster: str
    """Its id."""
    cluster_name: str
    """As people call it; may be empty."""
    node: str
    name: str
    """The node's id and name."""


@dataclass(frozen=True)
class Message:
    """What is posted."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def message_of(form: Form, alert: Alert, sender: Sender, at: str) -> Message:
    """Return what to post; `at` is the wall time in ISO 8601."""
    return _FORMS[form](alert, sender, at)


def _json(alert: Alert, sender: Sender, at: str) -> Message:
    return _posted(
        {
            "schema": SCHEMA,
            "alert": {
                "key": alert.key,
                "state": "over" if alert.is_over else "raised",
                "code": alert.code,
                "severity": str(alert.severity),
                "title": alert.title,
                "hint": alert.hint,
                "at": at,
            },
            "cluster": {"id": sender.cluster, "name": sender.cluster_name or None},
            "node": {"id": sender.node, "name": sender.name},
        }
    )


def _ntfy(alert: Alert, sender: Sender, _at: str) -> Message:
    severity = Severity.INFO if alert.is_over else alert.severity
    headers = {
        "Title": f"Jupiter: {alert.code}{' is over' if alert.is_over else ''}",
        "Priority": NTFY_PRIORITY[severity],
        "Tags": NTFY_TAG_OVER if alert.is_over else NTFY_TAG[severity],
    }
    return Message(_text(alert, sender).encode(), headers)


def _slack(alert: Alert, sender: Sender, _at: str) -> Message:
    text = _text(alert, sender)
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, written)
    quiet = {"parse": "none", "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    return _posted({"text": text, **quiet})


def _discord(alert: Alert, sender: Sender, _at: str) -> Message:
    text = re.sub(DISCORDS_SIGNS, r"\\\g<0>", _text(alert, sender))
    short = re.sub(r"\\+$", "", text[:MAX_DISCORD_CHARACTERS])
    return _posted(
        {"content": short, "allowed_mentions": {"parse": []}, "flags": DISCORD_WITHOUT_PREVIEWS}
    )


def _text(alert: Alert, sender: Sender) -> str:
    where = f"cluster {sender.cluster_name}" if sender.cluster_name else f"node {sender.name}"
    what = f"{alert.severity}: {alert.title}\nhint: {alert.hint}"
    title = f"over: {alert.title}" if alert.is_over else what
    return f"{title}\nJupiter, {where}"[:MAX_CHARACTERS]


def _posted(document: Mapping[str, Any]) -> Message:
    return Message(json.dumps(document).encode(), {"Content-Type": "application/json"})


_FORMS: Mapping[Form, Callable[[Alert, Sender, str], Message]] = {
    Form.JSON: _json,
    Form.NTFY: _ntfy,
    Form.SLACK: _slack,
    Form.DISCORD: _discord,
}
