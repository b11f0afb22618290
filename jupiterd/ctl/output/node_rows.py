"""The nodes of a status document as a table.

Pure. Owns the columns; doesn't know where the document comes from.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.text.hardware_words import hardware
from jupiterd.formats import duration, plain, table
from jupiterd.ids import short

HEADERS = ("NAME", "ID", "STATE", "ROLE", "HARDWARE", "ADDRESS", "REASON")


def node_table(status: Mapping[str, Any]) -> list[str]:
    """Return the lines of the table; the leader's name is followed by a star."""
    leader = (status.get("cluster") or {}).get("leader")
    return table(HEADERS, [_row(node, leader) for node in status.get("nodes", [])])


def contradiction_lines(status: Mapping[str, Any]) -> list[str]:
    """Return warnings about entries of this machine's cluster file that contradict the cluster."""
    lines = [line for node in status.get("nodes", []) for line in node.get("contradictions", [])]
    return ["", *(f"warning: {plain(line)}" for line in lines)] if lines else []


def _row(node: Mapping[str, Any], leader: str | None) -> tuple[object, ...]:
    is_leader = leader is not None and node.get("id") == leader
    return (
        f"{node.get('name')}{' *' if is_leader else ''}",
        short(node.get("id", "")),
        node.get("state"),
        node.get("role"),
        hardware(node.get("hardware")),
        next(iter(node.get("addresses", [])), None),
        _why(node),
    )


def _why(node: Mapping[str, Any]) -> str | None:
    """Return the reason for a node's role; for a silent node, first when it was last heard."""
    reason, heard_s = node.get("reason"), node.get("last_heard_s")
    if node.get("state") not in {"gone", "suspect"} or heard_s is None:
        return reason
    return f"last heard {duration(heard_s)} ago; {plain(reason)}"
