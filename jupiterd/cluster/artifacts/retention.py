"""Which artifacts nobody needs any more.

Owns three rules. A checkpoint may go once three newer ones follow it on every line through it,
unless it is every tenth, final, the end of a trunk that a round may go on from, or anything in the
ledger still refers to it. Of an island whose
round is over all may go that its run or cycle doesn't name. The way of an island may go once it
lies far behind the end of its outer line, and all ways of what is over, with the weights that its
islands began with. And whatever the ledger doesn't name at all may go, as long as
all of the ledger can be read here. Doesn't know disks or time: whoever goes by these rules waits
long enough for a name to be recorded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from functools import cache
from itertools import islice, takewhile

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.fact_wire import to_wire
from jupiterd.cluster.facts.facts import CheckpointCommitted, Fact, OuterStepTaken, UnknownFact
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.island_runs import is_outlived
from jupiterd.cluster.ledger.progress_tree import Leaf
from jupiterd.cluster.ledger.trunk import trunk_ends
from jupiterd.ids import ArtifactId

_NAME = re.compile(r"[0-9a-f]{64}")

RETAINED_OF_A_BRANCH = 3
RETAINED_EVERY = 10

TRAINING = "train"
"""The phase whose work draws the weights that all islands of a run begin with."""

RETAINED_STEPS = 16
"""Outer steps whose ways are kept, from the end of the line on."""


def unneeded(cycles: Iterable[CycleState]) -> frozenset[ArtifactId]:
    """Return the checkpoints that may be dropped, as far as all cycles together tell."""
    everything = [*cycles]
    known = {cycle.begun.cycle: cycle for cycle in everything if cycle.begun is not None}
    outlived = [cycle for cycle in everything if is_outlived(known, cycle)]
    going_on = [cycle for cycle in everything if not is_outlived(known, cycle)]
    pairs = [(cycle, _superseded(cycle)) for cycle in going_on]
    superseded = {artifact for _, found in pairs for artifact in found}
    superseded.update(fact.artifact for cycle in outlived for fact in _checkpoints(cycle))
    needed = {artifact for cycle, found in pairs for artifact in _needed(cycle, found)}
    return frozenset(superseded - needed)


def old_pseudo_gradients(cycles: Iterable[CycleState]) -> frozenset[ArtifactId]:
    """Return the ways that no island needs any more.

    Who has missed more outer steps than that begins with the state of another island. A run that
    was stopped may go on, and so may a cycle that failed, so neither is over; nor is a line that
    another may yet give way to.
    """
    gone: set[ArtifactId] = set()
    needed: set[ArtifactId] = set()
    for cycle in cycles:
        has_ended = _has_failed_for_good(cycle) or cycle.rounds_committed > 0
        (gone if has_ended else needed).update(_drawn_weights(cycle))
        for number, steps in _outer_rounds(cycle).items():
            is_over = _has_failed_for_good(cycle) or cycle.rounds_committed >= number
            last = max(step.number for step in cycle.outer_branch(number).values())
            for step in steps:
                is_retained = not is_over and step.number > last - RETAINED_STEPS
                (needed if is_retained else gone).update(step.pseudo_gradients)
    return frozenset(gone - needed)


def _has_failed_for_good(run: CycleState) -> bool:
    """Say whether it failed, and nobody can let it go on: a cycle is resumed, other runs aren't."""
    return run.failed is not None and run.started is None


def _drawn_weights(run: CycleState) -> Iterator[ArtifactId]:
    """Yield what a run's islands began with; another run may have drawn the same."""
    for fact in run.completed.values():
        if fact.phase == TRAINING:
            yield from fact.outputs.values()


def _outer_rounds(cycle: CycleState) -> dict[int, list[OuterStepTaken]]:
    found: dict[int, list[OuterStepTaken]] = {}
    for fact in cycle.outer_steps():
        if cycle.outer_branch(fact.round):
            found.setdefault(fact.round, []).append(fact)
    return found


def strays(held: Iterable[ArtifactId], facts: Iterable[Fact]) -> frozenset[ArtifactId]:
    """Return what is held and named by no fact; nothing where a fact is of a newer version."""
    named: set[str] = set()
    for fact in facts:
        if isinstance(fact, UnknownFact):
            return frozenset()
        named.update(_NAME.findall(repr(to_wire(fact))))
    return frozenset(held) - named


def _superseded(cycle: CycleState) -> set[ArtifactId]:
    """Return what is neither of the last of its line, nor a tenth, nor final, nor a trunk's end."""
    known = {fact.artifact: fact for fact in _checkpoints(cycle)}
    depths: dict[ArtifactId, int] = {}
    final = {fact.artifact for fact in known.values() if fact.is_final}
    final.update(map(ArtifactId, trunk_ends(cycle)))
    for leaf in cycle.leaves():
        final.update(fact.artifact for fact in islice(_upward(known, leaf), RETAINED_OF_A_BRANCH))
        fresh = list(takewhile(lambda fact: fact.artifact not in depths, _upward(known, leaf)))
        above = depths.get(ArtifactId(fresh[-1].parent), 0) if fresh else 0
        for depth, fact in enumerate(reversed(fresh), above + 1):
            depths[fact.artifact] = depth
    return {each for each, depth in depths.items() if depth % RETAINED_EVERY} - final


def _upward(
    known: Mapping[ArtifactId, CheckpointCommitted], leaf: Leaf
) -> Iterator[CheckpointCommitted]:
    """Yield a leaf's checkpoint and what it descends from; it has its place, so there is an end."""
    at: CheckpointCommitted | None = leaf.checkpoint
    while at is not None:
        yield at
        at = known.get(ArtifactId(at.parent))


def _checkpoints(cycle: CycleState) -> list[CheckpointCommitted]:
    return [fact for _, fact in cycle.placed() if isinstance(fact, CheckpointCommitted)]


def _needed(cycle: CycleState, superseded: AbstractSet[ArtifactId]) -> Iterator[str]:
    """Yield every checkpoint that isn't superseded, and whatever other facts may refer to."""
    yield from (fact.artifact for fact in _checkpoints(cycle) if fact.artifact not in superseded)
    over = cycle.attempts_closed
    for _, fact in cycle.placed():
        is_over = isinstance(fact, AttemptOpened) and fact.attempt in over
        if not isinstance(fact, CheckpointCommitted | AttemptClosed) and not is_over:
            yield from texts(fact)


def texts(fact: CycleFact, without: str = "") -> Iterator[str]:
    """Yield every text in a fact: what names an artifact is among them, whatever it is called.

    One of its fields may be left out.
    """
    for name in _fields_of(type(fact)):
        value: object = getattr(fact, name) if name != without else ()
        if isinstance(value, Mapping):
            value = tuple(value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        for each in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType]
            if isinstance(each, str):
                yield each


@cache
def _fields_of(kind: type[CycleFact]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
