"""The report of a daemon on the wire: what it is made of, and how much of it.

Owns the form and its bounds, on both sides: who asks believes nothing that is longer. Doesn't know
who asks, or where it is stored.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.rpc import peer_pb2

MAX_LINES: Final = 200
MAX_LINE_CHARACTERS: Final = 300
"""Of the log: together 60 kB at most."""

MAX_PROCESSES: Final = 64
MAX_VERSIONS: Final = 32

Report = dict[str, Any]
"""`versions` (name -> version, or None), `processes` (rows) and `log` (lines)."""


def process_row(task: str, order: str, attempt: int) -> dict[str, Any]:
    """Return the row of one running process; `epoch` is what programs knew `attempt` as before."""
    return {"task": task, "id": order, "epoch": attempt or None, "attempt": attempt or None}


def to_reply(report: Mapping[str, Any]) -> peer_pb2.ReportReply:
    """Return this daemon's report as a message."""
    return peer_pb2.ReportReply(
        versions=report["versions"] or {},
        processes=[
            peer_pb2.RunningProcess(task=row["task"], id=row["id"], attempt=row["attempt"] or 0)
            for row in report["processes"]
        ],
        log=report["log"],
    )


def read_reply(reply: peer_pb2.ReportReply) -> Report:
    """Return another daemon's report: short texts on one line each, and not too many."""
    versions = islice(sorted(reply.versions.items()), MAX_VERSIONS)
    return {
        "versions": {sanitized_text(name): sanitized_text(version) for name, version in versions}
        or None,
        "processes": [
            process_row(sanitized_text(row.task), sanitized_text(row.id), row.attempt)
            for row in reply.processes[:MAX_PROCESSES]
        ],
        "log": [sanitized_text(line, MAX_LINE_CHARACTERS) for line in reply.log[-MAX_LINES:]],
    }
