"""What an island of a run begins anew from: a checkpoint of another one, whose outer step counts.

Owns the choice, and how it is written down. Doesn't know ranks, or who has what in reach.

A checkpoint doesn't say which outer step it contains, but its step against the line's does: what an
island has saved within a round that it had a part in, is of that round. Groups that were apart may
both have had such a round; what is taken wrongly then can't catch up, and the next one is tried.

What an island has saved once its weights weren't those of the others is no seed, until a way of it
is merged again: nobody knows before that what it has.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import NamedTuple

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.outer_branch import Steps
from jupiterd.ids import CycleId

BY_NO_GANG = 0
"""Stands for the attempt of a checkpoint that an island has from another one."""

ROUND = 1
"""An island's run has one round."""

TRIED_OF_EACH = 3
"""Older ones may be gone: no more of a line are kept for certain."""


def seeds(
    line: Steps, siblings: Iterable[CycleState], adrift: str = ""
) -> Sequence[CheckpointCommitted]:
    """Return checkpoints of other islands whose outer steps are on the line, the newest first.

    adrift: the reason with which those are left out whose weights aren't those of the others
    """
    found = [
        saved
        for sibling in siblings
        for saved in islice(_sound(line, _own(sibling), adrift), TRIED_OF_EACH)
    ]
    return sorted(found, key=lambda saved: (saved.step, saved.artifact), reverse=True)


def _sound(
    line: Steps, own: Iterable[CheckpointCommitted], adrift: str
) -> Iterator[CheckpointCommitted]:
    steps = [*line.values()]
    for saved in own:
        if _is_on_line(steps, saved) and not _was_adrift(line, saved, adrift):
            yield saved


def _own(island: CycleState) -> Iterator[CheckpointCommitted]:
    """Yield what an island has saved since it began, the newest first.

    What it has saved before it began anew is of a line that counts no more, mostly.
    """
    for fact in reversed(island.canonical_branch()):
        if not isinstance(fact, CheckpointCommitted):
            continue
        if fact.attempt == BY_NO_GANG:
            return
        if not fact.is_final:
            yield fact


def _is_on_line(line: Sequence[OuterStepTaken], saved: CheckpointCommitted) -> bool:
    """Say whether an island had a part in the round that a checkpoint is of.

    One from between two rounds is of either.
    """
    until = bisect_right(line, saved.step, key=lambda taken: taken.first_step)
    near = takewhile(
        lambda taken: saved.step <= taken.first_step + taken.steps, reversed(line[:until])
    )
    return any(saved.cycle in taken.batches for taken in near)


def reseeded(
    island: CycleId, seed: CheckpointCommitted, last: CheckpointCommitted | None
) -> CheckpointCommitted:
    """Return what is recorded of an island that goes on from another's checkpoint.

    It hangs below the island's last one, and outweighs it, so that the island's line ends in it.
    """
    return replace(
        seed,
        cycle=island,
        parent="" if last is None else last.artifact,
        attempt=BY_NO_GANG,
        tokens=seed.tokens if last is None else max(seed.tokens, last.tokens + 1),
        is_final=False,
    )


def left_out_again(line: Steps, island: CycleId, reason: str) -> str:
    """Return the last outer step's name where it left out again an island's way for that reason.

    Only rounds that it had a part in are looked at, and the first one that it began after the step
    that left it out: where rounds overlap, one was open then, which it began with the same weights.
    Empty: it isn't so.
    """
    closed = _closed(line, island)
    newest = next(closed, None)
    if newest is None or newest.why != reason:
        return ""
    before = [each.why for each in islice(closed, newest.ordered.lag)]
    return newest.name if before == [reason] * newest.ordered.lag else ""


def left_out_last(line: Steps, island: CycleId, reason: str, after: int = -1) -> str:
    """Return the last outer step's name that left out an island's way for that reason.

    Empty: none did, or a way of the island was merged since then. Other reasons say nothing.

    after: the number of a step; only rounds that were ordered later are looked at
    """
    late = takewhile(lambda each: each.ordered.number > after, _closed(line, island))
    return _left_out_last(late, reason)


class _Closed(NamedTuple):
    """A round that is closed, and what became of the way of an island that had a part in it."""

    name: str
    """Of the outer step that closed it."""
    ordered: OuterStepTaken
    """The step that it followed."""
    why: str | None
    """Why the way was left out; None: it was merged."""


def _closed(line: Steps, island: CycleId) -> Iterator[_Closed]:
    """Yield the rounds that an island had a part in, the newest first."""
    steps = [*line.items()]
    for number, (name, taken) in reversed([*enumerate(steps)]):
        if number >= taken.lag and island in (ordered := steps[number - taken.lag][1]).batches:
            yield _Closed(name, ordered, taken.left_out.get(island))


def _left_out_last(closed: Iterable[_Closed], reason: str) -> str:
    """Return the last step's name that tells whether ways are left out for it, where they are."""
    telling = next((each for each in closed if each.why in {None, reason}), None)
    return "" if telling is None or telling.why is None else telling.name


def _was_adrift(line: Steps, saved: CheckpointCommitted, reason: str) -> bool:
    """Say whether an island's weights weren't those of the others when it saved this.

    What it told in a round is of the outer steps that a checkpoint within that round contains.
    """
    closed = _closed(line, saved.cycle)
    begun = (each for each in closed if each.ordered.first_step <= saved.step)
    return bool(_left_out_last(begun, reason))
