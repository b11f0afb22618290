"""What a merge of two clusters would bring, in words, for people who are to decide on it.

Owns the form in which a cluster tells of itself in short, what stands in the way, and what people
should know. Doesn't know how any of it travels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.membership.admission import MAX_MEMBERS
from jupiterd.cluster.membership.cluster_merge import removed_there
from jupiterd.errors import RefusedError
from jupiterd.ids import ClusterId, CycleId, NodeId, short

SAME_VERSION = "install the same version of jupiterd on both sides"
MAX_ROWS = 1024
"""Nodes, keys and cycles that are believed of another cluster, each."""


@dataclass(frozen=True)
class CycleBrief:
    """A cycle in short."""

    id: CycleId
    domain: str
    rounds: int
    running: bool
    generator: str
    started_at: str


@dataclass(frozen=True)
class Brief:
    """A cluster in short."""

    id: ClusterId
    name: str
    nodes: Mapping[NodeId, str]
    """Its members and their names."""
    removed: tuple[NodeId, ...]
    cycles: tuple[CycleBrief, ...]
    """In the order in which they were started."""

    @property
    def title(self) -> str:
        """How people know it."""
        return f"{self.name or 'cluster'} ({short(self.id)})"

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return asdict(self)


def brief(ledger: Ledger) -> Brief:
    """Return a cluster in short."""
    state = ledger.state
    started = sorted(
        (cycle for cycle in state.cycles.values() if cycle.started is not None),
        key=lambda cycle: cycle.start_order,
    )
    return Brief(
        id=ledger.cluster,
        name=state.label,
        nodes={node: fact.name for node, fact in sorted(state.members.items())},
        removed=tuple(sorted(removed_there(state))),
        cycles=tuple(
            CycleBrief(
                id=cycle.started.cycle,
                domain=cycle.started.domain,
                rounds=cycle.rounds_committed,
                running=not cycle.has_nothing_to_do,
                generator=cycle.generator,
                started_at=cycle.started.started_at,
            )
            for cycle in started
            if cycle.started is not None
        ),
    )


def read_brief(document: object) -> Brief:
    """Rebuild what another cluster said of itself; raises RefusedError where it is no brief."""
    match document:
        case {
            "id": str() as cluster,
            "name": str() as name,
            "nodes": dict() as nodes,
            "removed": list() as removed,
            "cycles": list() as cycles,
        } if max(len(nodes), len(removed), len(cycles)) <= MAX_ROWS:  # pyright: ignore[reportUnknownArgumentType]
            return Brief(
                ClusterId(cluster),
                name,
                {NodeId(str(node)): str(node_name) for node, node_name in nodes.items()},  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                tuple(NodeId(str(node)) for node in removed),  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                tuple(_read_cycle(cycle) for cycle in cycles),  # pyright: ignore[reportUnknownVariableType]
            )
        case _:
            raise RefusedError("the other cluster's answer can't be read", SAME_VERSION)


def _read_cycle(document: object) -> CycleBrief:
    match document:
        case {
            "id": str() as cycle,
            "domain": str() as domain,
            "rounds": int() as rounds,
            "running": bool() as running,
            "generator": str() as generator,
            "started_at": str() as started_at,
        }:
            return CycleBrief(CycleId(cycle), domain, rounds, running, generator, started_at)
        case _:
            raise RefusedError("the other cluster's answer can't be read", SAME_VERSION)


def obstacles(ours: Brief, theirs: Brief) -> list[tuple[str, str]]:
    """Return what stands in the way of ours becoming part of theirs, each with what to do."""
    found: list[tuple[str, str]] = []
    for cycle in ours.cycles:
        if cycle.running:
            what = f"cycle {short(cycle.id)} ({cycle.domain}) is running in {ours.title}"
            found.append((what, f"stop it first: jupiterctl cycle stop {short(cycle.id)}"))
    together = len(set(ours.nodes) | set(theirs.nodes))
    if together > MAX_MEMBERS:
        what = f"together they have {together} members, and {MAX_MEMBERS} is the limit"
        found.append((what, "remove some first: jupiterctl node remove NODE"))
    return found


def notes(ours: Brief, theirs: Brief) -> list[str]:
    """Return what people should know of ours becoming part of theirs."""
    goes_on = f"{theirs.title} goes on, with its name, window and tokens"
    return [
        f"{goes_on}; {ours.title} becomes part of it, and its own name, window and tokens end",
        *_same_names(ours, theirs),
        *_removed(ours, theirs),
        *_removed(theirs, ours),
        *_same_domains(ours, theirs),
    ]


def _same_names(ours: Brief, theirs: Brief) -> Iterator[str]:
    for node, name in ours.nodes.items():
        for other, other_name in theirs.nodes.items():
            if name == other_name and node != other:
                yield f"two nodes are called {name}: {short(node)} and {short(other)}"


def _removed(here: Brief, there: Brief) -> Iterator[str]:
    for node in here.removed:
        if node in there.nodes:
            yield (
                f"{there.nodes[node]} ({short(node)}) was removed from {here.title}, "
                "so it is no member afterwards"
            )


def _same_domains(ours: Brief, theirs: Brief) -> Iterator[str]:
    for domain in sorted(_domains(ours.cycles) & _domains(theirs.cycles)):
        both = [cycle for cycle in (*ours.cycles, *theirs.cycles) if cycle.domain == domain]
        listed = ", ".join(f"{short(cycle.id)} {_generator(cycle)}" for cycle in both)
        yield (
            f"both know the domain {domain}: each cycle keeps the generator that its own rounds "
            f"promoted, and none replaces another's ({listed})"
        )


def _domains(cycles: Sequence[CycleBrief]) -> set[str]:
    return {cycle.domain for cycle in cycles}


def _generator(cycle: CycleBrief) -> str:
    return f"has {short(cycle.generator)}" if cycle.generator else "has none"
