"""Runs that train an island of another run or of a cycle: parts of it, not seen by themselves.

Owns which are whose, and which of them count: a round's islands begin with what the cycle's line
has before that round. Doesn't know what islands do.
"""

from collections.abc import Iterable, Iterator, Mapping

from blake3 import blake3

from jupiterd.cluster.facts.facts import CycleFailed, CycleStateSet, TrainingStarted
from jupiterd.cluster.facts.lifecycle_facts import CycleRevived
from jupiterd.cluster.ledger.cycle_state import RUNNING, STOPPED, CycleState
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.ids import CycleId

Cycles = Mapping[CycleId, CycleState]
Pair = tuple[CycleState, TrainingStarted]

TOO_SLOW = "it takes more than four times as long as the fastest"
"""Why an island is let go for good."""


def island_id(run: str, round_number: int, start: str, which: int | str) -> CycleId:
    """Return the id of an island; groups that begin the same round apart have the same ones.

    which: its number, or the machine that came
    """
    identity = f"{run}/{round_number}/{start}/{which}"
    return CycleId(blake3(identity.encode()).hexdigest()[:16])


def parent_of(cycle: CycleState) -> CycleId:
    """Return the run of which this one trains an island; empty where it is a run of its own."""
    return CycleId("" if cycle.training is None else cycle.training.parent)


def is_whole(cycle: CycleState) -> bool:
    """Say whether it is a cycle or a run of its own."""
    return not parent_of(cycle)


def islands_of(cycles: Cycles, run: CycleId) -> list[Pair]:
    """Return all islands of a run, or of all rounds of a cycle, in the order of their numbers."""
    found = [
        (cycle, cycle.training)
        for cycle in cycles.values()
        if cycle.training is not None and cycle.training.parent == run
    ]
    return sorted(found, key=lambda pair: (number_of(pair[1]), pair[1].cycle))


def islands_in(cycles: Cycles, run: CycleId, round_number: int) -> list[Pair]:
    """Return the islands of a round that count, in the order of their numbers."""
    start = cycles[run].start_of(round_number)
    return [pair for pair in islands_of(cycles, run) if _place(pair[1]) == (round_number, start)]


def counting_islands(cycles: Cycles, run: CycleId) -> list[Pair]:
    """Return the islands of all rounds that count, in the order of their rounds and numbers."""
    found = islands_of(cycles, run)
    rounds = sorted({started.parent_round for _, started in found})
    starts = {number: cycles[run].start_of(number) for number in rounds}
    return [pair for each in starts.items() for pair in found if _place(pair[1]) == each]


def is_active(cycles: Cycles, cycle: CycleState) -> bool:
    """Say whether a cycle or run is driven just now: all are, but for islands of some rounds.

    Those rest: they are of another branch, or one gang has taken their round up.
    """
    if cycle.training is None or not cycle.training.parent:
        return True
    run = cycles.get(CycleId(cycle.training.parent))
    if run is None:
        return False
    number, start = _place(cycle.training)
    is_next = number <= run.rounds_committed + 1
    return is_next and start == run.start_of(number) and not _is_of_a_gang(run, number)


def is_shared_by_others(cycles: Cycles, cycle: CycleState) -> bool:
    """Say whether the weights that an island trains from are on the disks of other islands, too.

    All have the same after each outer step, and each saves its own; what one alone has is how far
    its optimizer's moments are, and its steps since then.
    """
    island = cycle.training
    run = None if island is None else cycles.get(CycleId(island.parent))
    if island is None or run is None:
        return False
    line = [*run.outer_branch(island.parent_round).values()]
    return bool(line) and len(line[-1].islands or line[-1].batches) > 1


def is_outlived(cycles: Cycles, cycle: CycleState) -> bool:
    """Say whether it trained an island of a round that is over, on the line that counts.

    Nobody goes on from what it has saved: the round's model is what remains of all its islands.
    """
    island = cycle.training
    run = None if island is None else cycles.get(CycleId(island.parent))
    if island is None or run is None or not cycle.has_nothing_to_do:
        return False
    number, start = _place(island)
    return run.rounds_committed >= number and run.start_of(number) == start


def is_trained_in(run: CycleState, round_number: int) -> bool:
    """Say whether a round of a run or a cycle has its last checkpoint."""
    last = run.last_checkpoint(round_number)
    return last is not None and last.is_final


def _is_of_a_gang(run: CycleState, round_number: int) -> bool:
    """Say whether a gang has trained a part of a round: islands record its end alone."""
    last = run.last_checkpoint(round_number)
    return last is not None and not last.is_final


def _place(island: TrainingStarted) -> tuple[int, str]:
    """Return the round of an island, and the checkpoint that the round begins with."""
    is_first, said = island.parent_round == 1, island.settings
    start = said.get("adapter_from") or said.get("start_from") or ""
    return island.parent_round, "" if is_first else str(start)


def least_batch_of(island: TrainingStarted) -> int:
    """Return the fewest sequences of a step, over all islands; 0: they don't follow from the text.

    A cycle may have been started with fewer: its rounds' islands are those that are here by then.
    """
    return int(island.settings.get("least_batch") or 0)


def number_of(island: TrainingStarted) -> int:
    """Return an island's number; its name ends in it."""
    _, _, number = island.name.rpartition("/")
    return int(number) if number.isdecimal() else 0


def is_trained(cycle: CycleState) -> bool:
    """Say whether an island has recorded its last checkpoint."""
    return is_trained_in(cycle, 1)


def with_islands(cycles: Cycles, fact: CycleStateSet) -> list[CycleStateSet]:
    """Return what is recorded where a run is stopped or goes on: the same for its islands.

    But those that were let go for good stay where they are.
    """
    commanded = _commanded(cycles, fact.cycle, fact.wanted, fact.reason)
    return [fact, *(each for each in commanded if cycles[each.cycle].wanted_reason != TOO_SLOW)]


def stopped_with(cycles: Cycles, run: CycleId, reason: str) -> list[CycleStateSet]:
    """Return what ends the islands of a run that is over, or of all rounds up to now."""
    return _commanded(cycles, run, STOPPED, reason)


def stopped_in(cycles: Cycles, run: CycleId, round_number: int, reason: str) -> list[CycleStateSet]:
    """Return what ends the islands of a round that is trained."""
    return list(_commands(islands_in(cycles, run, round_number), STOPPED, reason))


def going_on_in(cycles: Cycles, run: CycleId, round_number: int) -> list[CycleStateSet]:
    """Return what lets the islands of a round go on, but for those that were let go for good."""
    found = islands_in(cycles, run, round_number)
    fast_enough = [pair for pair in found if pair[0].wanted_reason != TOO_SLOW]
    return list(_commands(fast_enough, RUNNING, "its round goes on"))


def failed_with(cycles: Cycles, fact: CycleFailed) -> list[CycleFailed]:
    """Return what is recorded where a run fails: the same for its islands."""
    found = islands_of(cycles, fact.cycle)
    left = [island.cycle for cycle, island in found if not cycle.has_nothing_to_do]
    return [fact, *(CycleFailed(each, fact.code, fact.message, fact.hint) for each in left)]


def revived_with(cycles: Cycles, run: CycleId) -> list[CycleRevived]:
    """Return what lets a run that failed go on, with the islands that failed with it; or nothing.

    An island that failed by itself stays where it is.
    """
    failed = cycles[run].failed
    if failed is None:
        return []
    islands = ((island.cycle, cycle.failed) for cycle, island in islands_of(cycles, run))
    error = (failed.code, failed.message)
    with_it = [each for each, why in islands if why and (why.code, why.message) == error]
    return list(map(CycleRevived, [run, *with_it]))


def _commanded(cycles: Cycles, run: CycleId, wanted: str, reason: str) -> list[CycleStateSet]:
    return list(_commands(islands_of(cycles, run), wanted, reason))


def _commands(islands: Iterable[Pair], wanted: str, reason: str) -> Iterator[CycleStateSet]:
    for cycle, island in islands:
        is_over = cycle.failed is not None or cycle.rounds_committed >= cycle.rounds_wanted
        if not is_over and cycle.wanted != wanted:
            yield CycleStateSet(island.cycle, wanted, reason, edit_after(cycle.wanted_edit))
