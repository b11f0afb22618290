"""The events between two status documents of a cluster, for people to read.

Pure. Owns the codes, the levels and the words. Doesn't know when documents are taken, or what
stores the events: it compares two status documents, each with

    alerts       that were raised, and people haven't dismissed
    runs         the documents of cycles and runs that go on, or did at the look before; by id
    known_runs   the ids of all that the ledger tells of
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.cluster.health import alerts
from jupiterd.cluster.membership.approval import approve_command
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.text.health_words import NEWS
from jupiterd.cluster.values.node_names import distinct_names
from jupiterd.cluster.values.severity import Severity
from jupiterd.formats import plain, size
from jupiterd.ids import NodeId, short

PENDING: Final = "pending"
"""The state of a machine that waits to be let in."""

REPORTED_OTHERWISE: Final = {"node-gone", "node-waits", "no-leader", *alerts.TABLE}
"""Codes of health lines that other events of machines, leaders or alerts report."""

REPORTED_BY_RUNS: Final = {"run-failed", "verdict"}
"""Codes of alerts whose events the run reports itself."""

REPORTED_LINE_BY_LINE: Final = {"contradiction", "no-effect"}
"""Codes of health lines that occur several times: one for each line of a cluster file."""

OVER: Final = {"finished", "failed", "stopped"}
"""States of a run that does nothing more."""

OF_A_VERDICT: Final = ("round", "candidate", "verdict", "val_bpb", "reason")
"""What tells it from others: a round may be judged again."""

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


def status_changes(before: Document, after: Document) -> Iterator[Event]:
    """Yield the events between two status documents; none where there is no first one."""
    if not before:
        return
    yield from _leader(before, after)
    yield from _nodes(before, after)
    yield from _health(before, after)
    yield from _alerts(before, after)
    yield from _dismissals(before, after)
    yield from _runs(before, after)
    yield from _fetches(before, after)


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
    names = _names(before) | _names(after)
    for node_id in were.keys() - are.keys():
        if were[node_id].get("state") != PENDING:
            words = f"{names[NodeId(node_id)]} is no longer a member"
            yield Event(Severity.INFO, "node-removed", words, node_id)
    for node_id, node in are.items():
        yield from _node(were.get(node_id), node, names[NodeId(node_id)])


def _node(was: Document | None, node: Document, name: str) -> Iterator[Event]:
    node_id, state = NodeId(str(node.get("id"))), node.get("state")
    had = None if was is None else was.get("state")
    if state == PENDING:
        if had != PENDING:
            own = plain(node.get("name"))
            command = approve_command(own if name == own else "", node_id)
            words = f"{name} waits to be let in: {command}"
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
    were, are, seen = _warnings(before), _warnings(after), _dismissed(before, after)
    for key in are.keys() - were.keys():
        yield _event_of_line(are[key], _severity(are[key]), plain(are[key].get("title")))
    gone = {key for key, node in _by_id(after).items() if node.get("state") == Liveness.GONE}
    for key in were.keys() - are.keys():
        if were[key].get("code") == "node-suspect" and were[key].get("node") in gone:
            continue  # it has gone since: it answers no better
        if were[key].get("key") in seen:
            continue
        title = plain(were[key].get("title"))
        yield _event_of_line(were[key], Severity.INFO, f"over: {title}")


def _alerts(before: Document, after: Document) -> Iterator[Event]:
    were, are = ({row["key"]: row for row in each.get("alerts") or ()} for each in (before, after))
    known, seen = before.get("known_runs") or (), _dismissed(before, after)
    for key in are.keys() - were.keys():
        if are[key].get("code") in REPORTED_BY_RUNS and are[key].get("cycle") in known:
            continue
        words = f"alert: {plain(are[key].get('title'))}"
        yield _event_of_line(are[key], _severity(are[key]), words)
    for key in were.keys() - are.keys():
        if were[key].get("code") not in NEWS and key not in seen:
            words = f"alert over: {plain(were[key].get('title'))}"
            yield _event_of_line(were[key], Severity.INFO, words)


def _dismissals(before: Document, after: Document) -> Iterator[Event]:
    """Yield the alerts that people have dismissed, and the end of those, which nobody is sent."""
    were, are = (_keyed(each.get("dismissed")) for each in (before, after))
    for key in _dismissed(before, after):
        yield _event_of_line(are[key], Severity.INFO, f"dismissed: {plain(are[key].get('title'))}")
    lines = _keyed((*(after.get("health") or ()), *(after.get("alerts") or ())))
    for key in were.keys() - are.keys() - lines.keys():
        if were[key].get("code") not in NEWS:
            yield _event_of_line(were[key], Severity.INFO, f"over: {plain(were[key].get('title'))}")


def _dismissed(before: Document, after: Document) -> AbstractSet[object]:
    """Return the keys of what was dismissed between the two."""
    were, are = (_keyed(each.get("dismissed")) for each in (before, after))
    return are.keys() - were.keys()


def _keyed(lines: Sequence[Document] | None) -> dict[object, Document]:
    return {line.get("key"): line for line in lines or ()}


def _event_of_line(line: Document, level: Severity, words: str) -> Event:
    node, cycle = str(line.get("node") or ""), str(line.get("cycle") or "")
    return Event(level, plain(line.get("code")), words, node, cycle)


def _severity(line: Document) -> Severity:
    level = line.get("severity")
    return Severity(level) if level in set(Severity) else Severity.WARNING


def _runs(before: Document, after: Document) -> Iterator[Event]:
    """Yield the events of runs, but not those from before this node joined their cluster."""
    were: Mapping[str, Document] = before.get("runs") or {}
    if _cluster(before) != _cluster(after):
        return
    for run, now in (after.get("runs") or {}).items():
        if run in were:
            yield from _run(were[run], now)
        elif run not in (before.get("known_runs") or ()):
            yield from _began(now)
        elif now.get("state") not in OVER:  # nobody looked at it: it was over, and goes on again
            yield _changed(now)


def _fetches(before: Document, after: Document) -> Iterator[Event]:
    """Yield starts and ends of model downloads from the hub on this machine."""
    were = {row["name"]: row for row in before.get("fetches") or ()}
    for row in after.get("fetches") or ():
        if row["state"] != (were.get(row["name"]) or {}).get("state"):
            name, done = plain(row["name"]), f"{size(row['done'])} of {size(row['total'])}"
            words = {
                "fetching": f"fetching {name} from the hub: {done} are here",
                "brought": f"{name} is here, fetched from the hub: {size(row['total'])}",
            }.get(row["state"], f"fetching {name} was cut off: {done} stay here")
            yield Event(Severity.INFO, "hub-fetch", words)


def _began(now: Document) -> Iterator[Event]:
    """Yield that a run began; what is over already happened while nobody looked."""
    yield Event(Severity.INFO, "run-started", f"{_named(now)} began", cycle=str(now.get("id")))
    if now.get("state") in OVER:
        yield _changed(now)
    else:
        yield from _went_on({}, now)


def _run(was: Document, now: Document) -> Iterator[Event]:
    if was.get("state") != now.get("state"):
        yield _changed(now)
    yield from _went_on(was, now)


def _went_on(was: Document, now: Document) -> Iterator[Event]:
    cycle, named = str(now.get("id")), _named(now)
    for verdict in _new(was, now, "verdicts", *OF_A_VERDICT):
        words = f"{named}: round {plain(verdict.get('round'))} {plain(verdict.get('verdict'))}, "
        words += plain(verdict.get("reason"))
        yield Event(Severity.INFO, "verdict-reached", words, cycle=cycle)
    if now.get("phase") and (now["phase"], now.get("round")) != (
        was.get("phase"),
        was.get("round"),
    ):
        words = f"{named}: round {plain(now.get('round'))}, {plain(now['phase'])}"
        yield Event(Severity.INFO, "phase-began", words, cycle=cycle)
    for event in _new(was, now, "events", "seq"):
        yield Event(Severity.INFO, "run-told", f"{named}: {plain(event.get('text'))}", cycle=cycle)


def _changed(now: Document) -> Event:
    cycle, named, state = str(now.get("id")), _named(now), plain(now.get("state"))
    failure: Document = now.get("failure") or {}
    if failure:
        words = f"{named} failed: {plain(failure.get('message'))}"
        return Event(Severity.ERROR, "run-failed", words, cycle=cycle)
    return Event(Severity.INFO, "run-changed", f"{named} is {state}", cycle=cycle)


def _named(run: Document) -> str:
    return f"{plain(run.get('domain'))} {short(str(run.get('id')))}"


def _cluster(document: Document) -> object:
    return (document.get("cluster") or {}).get("id")


def _new(was: Document, now: Document, rows: str, *keys: str) -> Iterator[Document]:
    known = {tuple(map(row.get, keys)) for row in was.get(rows) or ()}
    yield from (row for row in now.get(rows) or () if tuple(map(row.get, keys)) not in known)


def _by_id(document: Document) -> dict[str, Document]:
    return {str(node.get("id")): node for node in _nodes_of(document)}


def _nodes_of(document: Document) -> Sequence[Document]:
    return document.get("nodes") or ()


def _name(document: Document, node_id: object) -> str:
    return _names(document).get(NodeId(str(node_id))) or short(str(node_id))


def _names(document: Document) -> dict[NodeId, str]:
    nodes = _by_id(document).items()
    return distinct_names({NodeId(each): plain(node.get("name") or "") for each, node in nodes})


def _warnings(document: Document) -> dict[tuple[str, str], Document]:
    return {
        (plain(item.get("code")), _about(item)): item
        for item in document.get("health") or ()
        if item.get("code") not in REPORTED_OTHERWISE
    }


def _about(line: Document) -> str:
    """Return what distinguishes a health line from others of its code, without its figures."""
    return plain(
        line.get("title") if line.get("code") in REPORTED_LINE_BY_LINE else line.get("node")
    )
