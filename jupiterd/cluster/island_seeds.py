"""What an island of a run begins anew from: a checkpoint of another one, whose outer step counts.

Owns the choice, and how it is written down. Doesn't know ranks, or who has what in reach.

A checkpoint doesn't say which outer step it contains, but its step against the line's does: what an
island has saved within a round that it had a part in, is of that round. Groups that were apart may
both have had such a round; what is taken wrongly then can't catch up, and the next one is tried.

What an island has saved once its weights weren't those of the others is no seed, until a way of it
is merged again: nobody knows before that what it has.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cluster.outer_line import Steps
from jupiterd.ids import CycleId

BY_NO_GANG = 0
"""Stands for the epoch of a checkpoint that an island has from another one."""

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
    closed: Sequence[_Closed] | None = None
    for saved in own:
        closed = _closed(line, saved.cycle) if closed is None else closed
        if _is_on_line(steps, saved) and not _was_adrift(closed, saved, adrift):
            yield saved


def _own(island: CycleState) -> Iterator[CheckpointCommitted]:
    """Yield what an island has saved since it began, the newest first.

    What it has saved before it began anew is of a line that counts no more, mostly.
    """
    for fact in reversed(island.line()):
        if not isinstance(fact, CheckpointCommitted):
            continue
        if fact.epoch == BY_NO_GANG:
            return
        if not fact.is_final:
            yield fact


def _is_on_line(line: Sequence[OuterStepTaken], saved: CheckpointCommitted) -> bool:
    """Say whether an island had a part in the round that a checkpoint is of.

    One from between two rounds is of either.
    """
    return any(
        saved.cycle in taken.batches
        and taken.first_step <= saved.step <= taken.first_step + taken.steps
        for taken in line
    )


def begun_anew(
    island: CycleId, seed: CheckpointCommitted, last: CheckpointCommitted | None
) -> CheckpointCommitted:
    """Return what is recorded of an island that goes on from another's checkpoint.

    It hangs below the island's last one, and outweighs it, so that the island's line ends in it.
    """
    return replace(
        seed,
        cycle=island,
        parent="" if last is None else last.artifact,
        epoch=BY_NO_GANG,
        tokens=seed.tokens if last is None else max(seed.tokens, last.tokens + 1),
        is_final=False,
    )


def left_out_again(line: Steps, island: CycleId, reason: str) -> str:
    """Return the last outer step's name where it left out again an island's way for that reason.

    Only rounds that it had a part in are looked at, and the first one that it began after the step
    that left it out: where rounds overlap, one was open then, which it began with the same weights.
    Empty: it isn't so.
    """
    had_part = _closed(line, island)
    if not had_part:
        return ""
    newest = had_part[-1]
    lag = newest.ordered.lag
    last = [each.why for each in had_part[-1 - lag :]]
    return newest.name if len(last) > lag and all(why == reason for why in last) else ""


def left_out_last(line: Steps, island: CycleId, reason: str, after: int = -1) -> str:
    """Return the last outer step's name that left out an island's way for that reason.

    Empty: none did, or a way of the island was merged since then. Other reasons say nothing.

    after: the number of a step; only rounds that were ordered later are looked at
    """
    late = [each for each in _closed(line, island) if each.ordered.number > after]
    return _left_out_last(late, reason)


class _Closed(NamedTuple):
    """A round that is closed, and what became of the way of an island that had a part in it."""

    name: str
    """Of the outer step that closed it."""
    ordered: OuterStepTaken
    """The step that it followed."""
    why: str | None
    """Why the way was left out; None: it was merged."""


def _closed(line: Steps, island: CycleId) -> list[_Closed]:
    steps = [*line.items()]
    return [
        _Closed(name, steps[number - taken.lag][1], taken.left_out.get(island))
        for number, (name, taken) in enumerate(steps)
        if number >= taken.lag and island in steps[number - taken.lag][1].batches
    ]


def _left_out_last(closed: Sequence[_Closed], reason: str) -> str:
    telling = next((each for each in reversed(closed) if each.why in {None, reason}), None)
    return "" if telling is None or telling.why is None else telling.name


def _was_adrift(closed: Sequence[_Closed], saved: CheckpointCommitted, reason: str) -> bool:
    """Say whether an island's weights weren't those of the others when it saved this.

    What it told in a round is of the outer steps that a checkpoint within that round contains.
    """
    begun = [each for each in closed if each.ordered.first_step <= saved.step]
    return bool(_left_out_last(begun, reason))
