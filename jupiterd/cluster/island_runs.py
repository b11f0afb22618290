"""Runs that train an island of another run: parts of it, which people don't see by themselves.

Owns which are whose. Doesn't know what islands do.
"""

from collections.abc import Iterator, Mapping

from jupiterd.cluster.cycle_state import STOPPED, CycleState
from jupiterd.cluster.facts import CycleFailed, CycleStateSet, TrainingStarted
from jupiterd.ids import CycleId

Cycles = Mapping[CycleId, CycleState]


def parent_of(cycle: CycleState) -> CycleId:
    """Return the run of which this one trains an island; empty where it is a run of its own."""
    return CycleId("" if cycle.training is None else cycle.training.parent)


def is_whole(cycle: CycleState) -> bool:
    """Say whether it is a cycle or a run of its own."""
    return not parent_of(cycle)


def islands_of(cycles: Cycles, run: CycleId) -> list[tuple[CycleState, TrainingStarted]]:
    """Return the islands of a run, in the order of their numbers."""
    found = [
        (cycle, cycle.training)
        for cycle in cycles.values()
        if cycle.training is not None and cycle.training.parent == run
    ]
    return sorted(found, key=lambda pair: (number_of(pair[1]), pair[1].cycle))


def number_of(island: TrainingStarted) -> int:
    """Return an island's number; its name ends in it."""
    _, _, number = island.name.rpartition("/")
    return int(number) if number.isdecimal() else 0


def is_trained(cycle: CycleState) -> bool:
    """Say whether an island has recorded its last checkpoint."""
    last = cycle.last_checkpoint(1)
    return last is not None and last.is_final


def with_islands(cycles: Cycles, fact: CycleStateSet) -> list[CycleStateSet]:
    """Return what is recorded where a run is stopped or goes on: the same for its islands."""
    return [fact, *_commanded(cycles, fact.cycle, fact.wanted, fact.reason)]


def stopped_with(cycles: Cycles, run: CycleId, reason: str) -> list[CycleStateSet]:
    """Return what ends the islands of a run that is over."""
    return _commanded(cycles, run, STOPPED, reason)


def failed_with(cycles: Cycles, fact: CycleFailed) -> list[CycleFailed]:
    """Return what is recorded where a run fails: the same for its islands."""
    found = islands_of(cycles, fact.cycle)
    left = [island.cycle for cycle, island in found if not cycle.finished]
    return [fact, *(CycleFailed(each, fact.code, fact.message, fact.hint) for each in left)]


def _commanded(cycles: Cycles, run: CycleId, wanted: str, reason: str) -> list[CycleStateSet]:
    return list(_commands(islands_of(cycles, run), wanted, reason))


def _commands(
    islands: list[tuple[CycleState, TrainingStarted]], wanted: str, reason: str
) -> Iterator[CycleStateSet]:
    for cycle, island in islands:
        is_over = cycle.failed is not None or cycle.rounds_committed >= cycle.rounds_wanted
        if not is_over and cycle.wanted != wanted:
            yield CycleStateSet(island.cycle, wanted, reason, cycle.wanted_edit + 1)
