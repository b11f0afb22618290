"""Where a cycle may wait for people: at the end of each phase, before the next one begins.

Owns which phase lies behind a step, and what may be done again. Doesn't know who asks people, or
what they answer.
"""

from collections.abc import Collection

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.steps import CloseRound, RunItems, Step
from jupiterd.cycle.phases.view import RoundView, item_id

Place = tuple[int, Phase]
"""A round, and a phase of it."""

OF_DATA = (Phase.COLLECT, Phase.GENERATE, Phase.FILTER, Phase.PACK)
"""What may be done again as long as the round isn't trained on."""

REDOABLE = (*OF_DATA, Phase.EVALUATE, Phase.GATE)
"""What may be done again at all. The last two as long as the round isn't closed, and each look at
the held-out text that was spent stays spent. Not training: the same data in the same order, from
the same weights, would come to the same model."""


def boundary(view: RoundView, step: Step) -> Place | None:
    """Return the phase that has ended before this step; None where nothing has.

    The end of a round is shown before it is closed: what the gate said can't be changed behind it.
    """
    match step:
        case CloseRound():
            return view.round, Phase.GATE
        case RunItems(phase):
            return place_before(view.round, _done(view), phase)
        case _:
            return place_before(view.round, _done(view), Phase.TRAIN)


def place_before(
    round_number: int, done: Collection[Phase], phase: Phase | None = None
) -> Place | None:
    """Return the last phase that is done, of those before one where that is named.

    done: the phases of this round that have results
    """
    order = list(Phase)
    earlier = order[: order.index(phase)] if phase is not None else order
    last = next((each for each in reversed(earlier) if each in done), None)
    if last is not None:
        return round_number, last
    return (round_number - 1, Phase.GATE) if round_number > 1 else None


def with_those_behind(phase: Phase) -> tuple[Phase, ...]:
    """Return a phase and those that are made of it."""
    order = list(Phase)
    return tuple(order[order.index(phase) :])


def _done(view: RoundView) -> set[Phase]:
    found = {
        phase
        for phase in Phase
        if any(name.startswith(_beginning(view.round, phase)) for name in view.completed)
    }
    return found | ({Phase.TRAIN} if view.candidate is not None else set())


def _beginning(round_number: int, phase: Phase) -> str:
    return item_id(round_number, phase, 0).removesuffix("0")
