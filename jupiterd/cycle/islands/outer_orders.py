"""The order of each outer round: how pseudo-gradients are merged, and what islands train on then.

Owns these decisions, which one leader takes and writes down. Pure. Doesn't know facts, nodes, or
how speeds were measured. Names of islands come in any order, and go out sorted: in that order their
pseudo-gradients are merged, and the positions of a round are cut.

    rate, momentum   1, and up to 0.6: Nesterov's momentum on the mean pseudo-gradient (DiLoCo,
    2311.08105), but
                     with all of what islands have just gone, where DiLoCo takes 0.7 of it. The
                     momentum comes bit by bit, k / (k + 3) after k rounds (Nesterov's own course;
                     Su, Boyd and Candes, 1503.01243): a run of few rounds would overshoot for good.
                     It counts for as much less as the learning rate has fallen since the round
                     before: what was gone at a high rate carries too far at a low one.
                     `average`: 1 and 0 throughout
    batches          one step's sequences, in proportion to what each island does in a second
    positions        those that came back, then the next ones; cut in the order of the names
    what comes back  the positions of an island whose pseudo-gradient doesn't count

Each step orders a round of its own. `blocking`, a step merges the pseudo-gradients of the round
before: islands wait for it. `overlapped`, it merges those of the round before that one, and
everybody trains in the meantime; so two rounds are ordered in the beginning, and two are open at
any time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final

from jupiterd.cycle.base.positions import Positions, Range, split
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.training.batch_shares import shares_by_rate
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.errors import Bug

AVERAGE: Final = "average"

RATE: Final = 1.0
MOMENTUM: Final = 0.6

BLOCKING, OVERLAPPED = "blocking", "overlapped"
LAGS: Final = {BLOCKING: 1, OVERLAPPED: 2}
"""How many steps lie between an order and the step that merges its pseudo-gradients: so many
rounds are open."""

WARM_UP_ROUNDS: Final = 3
"""After so many the momentum is a half; after 5 it is whole."""

LATE_SHARE: Final = 0.5
"""What an island takes of a step that didn't come in time, of what it took before."""

MISSING: Final = "it didn't come in time"
QUARANTINED: Final = "its weights are no numbers, or far from all others'"
STRANGER: Final = "it trains another model"
ADRIFT: Final = "its weights or momentum aren't those of the others"


@dataclass(frozen=True)
class OuterTraining:
    """What is trained, as far as rounds depend on it."""

    schedule: Schedule
    """Of the inner steps."""
    batch_sequences: int
    """Of one step, of all islands together."""
    outer: str = "nesterov"
    """Or `average`."""
    lag: int = 1
    """See `LAGS`."""
    places: tuple[int, ...] = ()
    """Inner steps after which a round ends in any case, from the first on."""
    ended: int = 0
    """After so many inner steps training is over, before the schedule is; 0: it isn't."""

    @property
    def steps(self) -> int:
        """Return the inner steps of the whole run."""
        return self.ended or self.schedule.steps

    def steps_of_round(self, first_step: int, every_steps: int) -> int:
        """Return how long a round is: as near to that as equal rounds up to a place can be."""
        place = next((each for each in self.places if each > first_step), None)
        if place is None:
            return min(every_steps, self.steps - first_step)
        left = place - first_step
        return -(-left // -(-left // every_steps))


@dataclass(frozen=True)
class Member:
    """An island that takes part in the next round."""

    name: str
    ranks: int = 1
    """Each takes a sequence of every step, at least."""
    tokens_per_s: float = 0.0
    """As it was measured last; 0: it wasn't."""


@dataclass(frozen=True)
class OuterOrder:
    """One outer step, and the round that follows it."""

    number: int
    islands: tuple[str, ...] = ()
    """Those whose pseudo-gradients are merged."""
    tokens: tuple[int, ...] = ()
    """What each of them has trained on."""
    weights: tuple[int, ...] = ()
    """How weighty each is: the tokens that its loss counts; empty: as weighty as its tokens."""
    rate: float = 0.0
    momentum: float = 0.0
    total_tokens: int = 0
    first_step: int = 0
    steps: int = 0
    """Of the round that it orders; 0: all steps were given out."""
    batches: Mapping[str, int] = field(default_factory=dict[str, int])
    positions: Mapping[str, tuple[Range, ...]] = field(default_factory=dict[str, tuple[Range, ...]])
    left: Positions = field(default_factory=Positions)
    """What is yet to be given out."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Island -> why its pseudo-gradient doesn't count."""
    lag: int = 1
    """See `LAGS`."""

    @property
    def closes(self) -> int:
        """Return the number of the step whose round it ends; below 0: it merges nothing."""
        return self.number - self.lag


def first_orders(
    training: OuterTraining, members: Collection[Member], every_steps: int
) -> list[OuterOrder]:
    """Return the beginning: nothing is merged, and as many rounds are ordered as are open.

    every_steps: how long a round is
    """
    orders = [_with_round(OuterOrder(0, lag=training.lag), training, members, every_steps)]
    while len(orders) < training.lag:
        orders.append(_with_round(_following(orders[-1]), training, members, every_steps))
    return orders


def next_order(
    training: OuterTraining,
    open_rounds: Sequence[OuterOrder],
    closing: Closing,
    members: Collection[Member],
    every_steps: int,
    steps_before: int = 0,
) -> OuterOrder:
    """Return what follows a round that has closed.

    Args:
        training: what is trained.
        open_rounds: the orders of those that were open; the first one is that which has closed.
        closing: how it ended.
        members: who takes part in the round that is ordered.
        every_steps: how long that one is, unless training ends before.
        steps_before: of the round before the one that has closed; 0: there was none.

    Raises:
        Bug: a pseudo-gradient counts of an island that had no part in the round, or nobody trains
        the next.
    """
    closed, last = open_rounds[0], open_rounds[-1]
    if not members or not {*closing.counted} <= closed.positions.keys():
        raise Bug(
            f"pseudo-gradients of {closing.counted} can't close {sorted(closed.positions)}'s round"
        )
    rate, momentum = rate_and_momentum(training, closed, steps_before)
    returned = [
        each for name, ranges in closed.positions.items() if name not in closing.counted
        for each in ranges
    ]  # fmt: skip
    merged = replace(
        _following(last),
        islands=closing.counted,
        tokens=closing.tokens,
        weights=closing.weights,
        rate=rate,
        momentum=momentum,
        total_tokens=last.total_tokens + sum(closing.tokens),
        left=last.left.give_back(returned),
        left_out=dict.fromkeys(closing.missing, MISSING)
        | dict.fromkeys(closing.quarantined, QUARANTINED)
        | dict.fromkeys(closing.strangers, STRANGER)
        | dict.fromkeys(closing.adrift, ADRIFT),
    )
    return _with_round(merged, training, _measured(members, closed.batches), every_steps)


def is_over(open_rounds: Collection[OuterOrder]) -> bool:
    """Say whether nothing is left to train or to merge, by the last orders of a line."""
    return not any(each.steps for each in open_rounds)


def _following(last: OuterOrder) -> OuterOrder:
    """Return a step after this one that merges nothing, and orders nothing yet."""
    return OuterOrder(
        number=last.number + 1,
        total_tokens=last.total_tokens,
        first_step=last.first_step + last.steps,
        left=last.left,
        lag=last.lag,
    )


def rate_and_momentum(
    training: OuterTraining, closed: OuterOrder, steps_before: int
) -> tuple[float, float]:
    """Return how the outer step after a round is taken.

    steps_before: of the round before that; 0: there was none
    """
    if training.outer == AVERAGE:
        return 1.0, 0.0
    gathered = min(MOMENTUM, closed.number / (closed.number + WARM_UP_ROUNDS))
    return RATE, gathered * _slowing(training.schedule, closed, steps_before)


def _slowing(schedule: Schedule, closed: OuterOrder, steps_before: int) -> float:
    """Return how far a round could get, of what the one before could; 1 at most."""
    before = schedule.distance(closed.first_step - steps_before, steps_before)
    return min(1.0, schedule.distance(closed.first_step, closed.steps) / before) if before else 1.0


def _with_round(
    merged: OuterOrder, training: OuterTraining, members: Collection[Member], every_steps: int
) -> OuterOrder:
    """Return the same step with the round that follows it."""
    steps = training.steps_of_round(merged.first_step, every_steps)
    if not steps:
        return merged
    taking_part = sorted(members, key=lambda member: member.name)
    batches = _batches(training.batch_sequences, taking_part)
    taken, left = merged.left.take(steps * training.batch_sequences)
    parts = split(taken, [steps * batch for batch in batches])
    names = [member.name for member in taking_part]
    return replace(
        merged,
        steps=steps,
        batches=dict(zip(names, batches, strict=True)),
        positions=dict(zip(names, parts, strict=True)),
        left=left,
    )


def _measured(members: Collection[Member], before: Mapping[str, int]) -> list[Member]:
    """Return the members with a speed for those that have none: half of what they had before.

    They didn't come in time with that, and if it was too much for them they never would. Whoever
    had no part before is taken for as fast as the others are on average.
    """
    known = {each.name: each.tokens_per_s for each in members if each.tokens_per_s > 0}
    took = sum(before.get(name, 0) for name in known)
    of_one = sum(known[name] for name in known if name in before) / took if took else 1.0
    for each in members:
        if each.name in before:
            known.setdefault(each.name, before[each.name] * of_one * LATE_SHARE)
    usual = fmean(known.values()) if known else 1.0
    return [replace(each, tokens_per_s=known.get(each.name, usual)) for each in members]


def _batches(batch: int, members: Sequence[Member]) -> Sequence[int]:
    """Return what each takes of a step: by speed where all were measured, else alike."""
    speeds = [member.tokens_per_s for member in members]
    rates = speeds if all(speed > 0 for speed in speeds) else [1.0] * len(members)
    return shares_by_rate(batch, rates, [member.ranks for member in members])
