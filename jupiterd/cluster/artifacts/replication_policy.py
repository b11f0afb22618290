"""Which artifacts must lie on two nodes, who takes the second copy, and who needn't keep one.

Owns the rule. Doesn't know how one finds out who has what, or how a copy is made.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.artifacts.old_rounds import LEAST_ROUNDS, outlived
from jupiterd.cluster.artifacts.retention import texts, unneeded
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import Cycles, is_shared_by_others
from jupiterd.ids import ArtifactId, NodeId

COPIES: Final = 2
MAX_AT_ONCE: Final = 64
"""Copies asked for after one look; the rest after the next."""

LITTLE_BYTES: Final = 2 << 30
"""A node with less free holds what its own work needs, and nothing for others."""

PREFERENCE: Final = {"trainer": 0, "hybrid": 0, "generator": 1, "idle": 2}
"""Whoever works on it will need it anyway."""


@dataclass(frozen=True)
class Holder:
    """A node that answered, and what it has of the artifacts it was asked for."""

    node: NodeId
    role: str
    artifacts: frozenset[ArtifactId]
    free_bytes: int
    """What its disk, and the limits people set, leave for artifacts."""


@dataclass(frozen=True)
class Copy:
    """A second copy that is to be made."""

    artifact: ArtifactId
    to: NodeId


def of_record(known: Cycles) -> frozenset[ArtifactId]:
    """Return every checkpoint that is kept, what rounds train on, and what work goes on from.

    Islands are each other's second copies, as long as there are others.

    Later rounds need what earlier ones made: the text held out in the first, samples, what was
    collected and in which state its source was. Once a run is over, its data set is what counts.
    What any node may have let go, however few rounds it keeps, isn't copied again.
    """
    cycles = [*known.values()]
    written = frozenset(
        each
        for cycle in cycles
        for each in _written_artifacts(cycle, only_final=is_shared_by_others(known, cycle))
        if each
    )
    return written - unneeded(cycles) - outlived(cycles, LEAST_ROUNDS)


def _written_artifacts(cycle: CycleState, *, only_final: bool) -> Iterator[ArtifactId]:
    for _, fact in cycle.placed():
        if isinstance(fact, CheckpointCommitted) and (fact.is_final or not only_final):
            yield fact.artifact
    for manifest in cycle.manifests.values():
        yield manifest.tokenizer
        yield from manifest.shards
    yield from _bases(cycle)
    if cycle.goes_on:
        if cycle.started is not None:
            yield ArtifactId(str(cycle.started.generator.get("artifact", "")))
            yield ArtifactId(str(cycle.started.judge.get("artifact", "")))
            yield ArtifactId(str(cycle.started.settings.get("start_from", "")))
        for done in cycle.completed.values():
            yield from done.outputs.values()
    if cycle.started is not None:  # models are asked them when the cycle is over, too
        yield ArtifactId(str(cycle.started.settings.get("questions", "")))
    if cycle.prepared is not None:
        yield from cycle.prepared.outputs.values()


def _bases(cycle: CycleState) -> Iterator[ArtifactId]:
    """Yield the models beside which adapters were trained, and the adapters that these began as."""
    for begun in (cycle.started, cycle.training):
        if begun is not None and begun.settings.get("lora"):
            yield ArtifactId(str(begun.settings.get("start_from", "")))
            yield ArtifactId(str(begun.settings.get("adapter_from", "")))


def copies_to_make(
    needed: Iterable[ArtifactId],
    holders: Collection[Holder],
    refused: Collection[Copy] = frozenset(),
) -> list[Copy]:
    """Return what to copy where: whatever lies on one node alone gets a second one.

    What was refused before isn't asked again. What nobody here has can't be helped.
    """
    found: list[Copy] = []
    given = dict.fromkeys((holder.node for holder in holders), 0)
    for artifact in sorted(needed):
        having = sum(artifact in holder.artifacts for holder in holders)
        able = [
            holder
            for holder in holders
            if artifact not in holder.artifacts
            and has_room(holder.free_bytes)
            and Copy(artifact, holder.node) not in refused
        ]
        if 0 < having < COPIES and able:
            best = min(able, key=lambda one: (_rank(one), given[one.node], -one.free_bytes))
            given[best.node] += 1
            found.append(Copy(artifact, best.node))
    return found[:MAX_AT_ONCE]


def has_room(free_bytes: int) -> bool:
    """Say whether a node takes copies for others, as far as its disk and its limits go."""
    return free_bytes >= LITTLE_BYTES


def takers(holders: Iterable[Holder], *, only_with_room: bool) -> list[NodeId]:
    """Return who should take a copy of what was just made, the best first.

    Those with little room come last, or not at all.
    """

    def key(one: Holder) -> tuple[bool, int, int, str]:
        return not has_room(one.free_bytes), _rank(one), -one.free_bytes, one.node

    able = (one for one in holders if has_room(one.free_bytes) or not only_with_room)
    return [one.node for one in sorted(able, key=key)]


def in_work(cycles: Iterable[CycleState]) -> frozenset[str]:
    """Return whatever the facts of work name that isn't over."""
    going_on = (cycle for cycle in cycles if cycle.goes_on)
    return frozenset(
        name for cycle in going_on for _, fact in cycle.placed() for name in texts(fact)
    )


def spare(held: Iterable[ArtifactId], others: Collection[Holder]) -> list[ArtifactId]:
    """Return what a node with little room needn't keep for others: two that have room have it.

    Whoever has little room itself doesn't count, for it may give up the same at the same time.
    """
    able = [holder.artifacts for holder in others if has_room(holder.free_bytes)]
    return [each for each in held if sum(each in one for one in able) >= COPIES]


def _rank(holder: Holder) -> int:
    return PREFERENCE.get(holder.role, len(PREFERENCE))
