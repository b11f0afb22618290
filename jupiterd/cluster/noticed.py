"""What changed between two looks at a cluster, as events that people read.

Pure. Owns the codes, the levels and the words. Doesn't know when it is looked, or what keeps the
events: it is handed two status documents, each with the `alerts` that were raised.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.cluster import alerts
from jupiterd.cluster.health import Severity
from jupiterd.cluster.health_words import NEWS
from jupiterd.cluster.membership import Liveness
from jupiterd.formats import plain
from jupiterd.ids import short

PENDING: Final = "pending"
"""The state of a machine that waits to be let in."""

TOLD_OTHERWISE: Final = {"node-gone", "node-waits", "no-leader", *alerts.TABLE}
"""Lines of health that are events of machines, leaders or alerts already."""

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    level: Severity
    code: str
    text: str
    node: str = ""
    """The machine that it is about."""
    cycle: str = ""


def noticed(before: Document, after: Document) -> Iterator[Event]:
    """Yield what happened between two status documents; nothing before the first one."""
    if not before:
        return
    yield from _leader(before, after)
    yield from _nodes(before, after)
    yield from _health(before, after)
    yield from _alerts(before, after)
    for kind in ("cycle", "train"):
        yield from _run(before.get(kind) or {}, after.get(kind) or {})


def _leader(before: Document, after: Document) -> Iterator[Event]:
    was, now = ((each.get("cluster") or {}).get("leader") for each in (before, after))
    if was == now:
        return
    if not now:
        yield Event(Severity.WARNING, "no-leader", "nobody leads the cluster")
    else:
        yield Event(Severity.INFO, "leader-elected", f"{_name(after, now)} leads", str(now))


def _nodes(before: Document, after: Document) -> Iterator[Event]:
    were, are = _by_id(before), _by_id(after)
    for node_id in were.keys() - are.keys():
        if were[node_id].get("state") != PENDING:
            name = plain(were[node_id].get("name"))
            yield Event(Severity.INFO, "node-removed", f"{name} is no longer a member", node_id)
    for node_id, node in are.items():
        yield from _node(were.get(node_id), node)


def _node(was: Document | None, node: Document) -> Iterator[Event]:
    name, node_id, state = plain(node.get("name")), str(node.get("id")), node.get("state")
    had = None if was is None else was.get("state")
    if state == PENDING:
        if had != PENDING:
            words = f"{name} waits to be let in: jupiterctl node approve {name}"
            yield Event(Severity.WARNING, "node-waits", words, node_id)
        return
    if had in {None, PENDING}:
        yield Event(Severity.INFO, "node-joined", f"{name} is a member", node_id)
    elif state == Liveness.GONE and had != state:
        yield Event(Severity.WARNING, "node-gone", f"{name} went away", node_id)
    elif state == Liveness.ALIVE and had == Liveness.GONE:
        yield Event(Severity.INFO, "node-back", f"{name} is back", node_id)
    if was is not None and node.get("role") != was.get("role"):
        words = f"{name} is {plain(node.get('role'))}: {plain(node.get('reason'))}"
        yield Event(Severity.INFO, "role-assigned", words, node_id)


def _health(before: Document, after: Document) -> Iterator[Event]:
    were, are = _warnings(before), _warnings(after)
    for key in are.keys() - were.keys():
        yield _told_of(are[key], _severity(are[key]), plain(are[key].get("title")))
    for key in were.keys() - are.keys():
        title = plain(were[key].get("title"))
        yield _told_of(were[key], Severity.INFO, f"over: {title}")


def _alerts(before: Document, after: Document) -> Iterator[Event]:
    were, are = ({row["key"]: row for row in each.get("alerts") or ()} for each in (before, after))
    for key in are.keys() - were.keys():
        words = f"alert: {plain(are[key].get('title'))}"
        yield _told_of(are[key], _severity(are[key]), words)
    for key in were.keys() - are.keys():
        if were[key].get("code") not in NEWS:
            words = f"alert over: {plain(were[key].get('title'))}"
            yield _told_of(were[key], Severity.INFO, words)


def _told_of(line: Document, level: Severity, words: str) -> Event:
    node, cycle = str(line.get("node") or ""), str(line.get("cycle") or "")
    return Event(level, plain(line.get("code")), words, node, cycle)


def _severity(line: Document) -> Severity:
    level = line.get("severity")
    return Severity(level) if level in set(Severity) else Severity.WARNING


def _run(was: Document, now: Document) -> Iterator[Event]:
    if not now:
        return
    cycle, named = str(now.get("id")), f"{plain(now.get('domain'))} {short(str(now.get('id')))}"
    if was.get("id") != now.get("id"):
        yield Event(Severity.INFO, "run-started", f"{named} began", cycle=cycle)
        was = {}
    elif was.get("state") != now.get("state"):
        yield _changed(now, named, cycle)
    if now.get("phase") and (now["phase"], now.get("round")) != (
        was.get("phase"),
        was.get("round"),
    ):
        words = f"{named}: round {plain(now.get('round'))}, {plain(now['phase'])}"
        yield Event(Severity.INFO, "phase-began", words, cycle=cycle)
    for told in _new(was, now, "events", "seq"):
        yield Event(Severity.INFO, "run-told", f"{named}: {plain(told.get('text'))}", cycle=cycle)
    for verdict in _new(was, now, "verdicts", "round"):
        words = f"{named}: round {plain(verdict.get('round'))} {plain(verdict.get('verdict'))}, "
        words += plain(verdict.get("reason"))
        yield Event(Severity.INFO, "verdict-reached", words, cycle=cycle)


def _changed(now: Document, named: str, cycle: str) -> Event:
    state = plain(now.get("state"))
    failure: Document = now.get("failure") or {}
    if failure:
        words = f"{named} failed: {plain(failure.get('message'))}"
        return Event(Severity.ERROR, "run-failed", words, cycle=cycle)
    return Event(Severity.INFO, "run-changed", f"{named} is {state}", cycle=cycle)


def _new(was: Document, now: Document, rows: str, key: str) -> Iterator[Document]:
    known = {row.get(key) for row in was.get(rows) or ()}
    yield from (row for row in now.get(rows) or () if row.get(key) not in known)


def _by_id(document: Document) -> dict[str, Document]:
    return {str(node.get("id")): node for node in _nodes_of(document)}


def _nodes_of(document: Document) -> Sequence[Document]:
    return document.get("nodes") or ()


def _name(document: Document, node_id: object) -> str:
    found = (node for node in _nodes_of(document) if node.get("id") == node_id)
    return plain(next(found, {}).get("name") or short(str(node_id)))


def _warnings(document: Document) -> dict[tuple[str, str], Document]:
    return {
        (plain(item.get("code")), plain(item.get("node") or item.get("title"))): item
        for item in document.get("health") or ()
        if item.get("code") not in TOLD_OTHERWISE
    }
