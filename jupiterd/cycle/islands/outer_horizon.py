"""Where the training of islands ends: by the rules of a gang (`training.horizon`), at outer steps.

Owns what is different there. The losses are those of merged weights, which all islands have. An
island merges them as it begins its next round, so whoever decides hears of them when that round is
over: the rate falls, or training ends, from there on. Doesn't know who decides, or who is told.

    rounds end where the trunk may       a loss is of exactly the place that it decides about
    the end of the trunk                 where the next round begins that isn't given out yet
    how often weights are scored         each island scores alone, so it costs the smallest most
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from jupiterd.cycle.training.held_out_measures import least_interval, measure_interval
from jupiterd.cycle.training.horizon import Horizon, end_step
from jupiterd.cycle.training.plan import TrainPlan


@dataclass(frozen=True, order=True)
class MergedLoss:
    """What an island says of weights that it has merged."""

    step: int
    """Steps that they contain, of all the run's."""
    loss: float
    """On held-out text, in nats a token; 0: there is none that may decide."""


def places(plan: TrainPlan, horizon: Horizon) -> tuple[int, ...]:
    """Return after which steps a round ends, however long rounds are; none once it is decided."""
    if not plan.extends_by_steps or horizon.decay_from:
        return ()
    first, last = plan.least_trunk_steps, plan.trunk_steps
    compared = max(0, first - plan.extends_by_steps)
    found = [compared, *range(first, last, plan.extends_by_steps), last]
    return tuple(step for step in found if step)


def is_scored(
    plan: TrainPlan, horizon: Horizon, step: int, due: int, scored: int, batch: int
) -> bool:
    """Say whether the weights that contain so many steps are scored.

    Args:
        plan: of the training.
        horizon: what is decided by then.
        step: that the weights contain.
        due: of the last weights that were to be scored.
        scored: sequences of held-out text.
        batch: sequences of a step that the smallest island takes.
    """
    if step <= due:
        return False
    is_place = bool(plan.extends_by_steps) and not horizon.decay_from
    if step >= end_step(plan, horizon) or (is_place and step in places(plan, horizon)):
        return True
    usual = measure_interval(plan.steps, plan.batch_sequences, scored)
    return step - due >= max(usual, least_interval(max(1, batch), scored))


def decided(plan: TrainPlan, horizon: Horizon, merged: Iterable[MergedLoss], step: int) -> Horizon:
    """Return what is decided by losses that islands tell; those that were taken in count no more.

    step: where the next round begins that isn't given out
    """
    news = sorted(each for each in merged if each.step > horizon.step)
    for after, same in groupby(news, key=lambda each: each.step):
        losses = [each.loss for each in same if each.loss > 0]
        found = horizon.measured(plan, after, fmean(losses) if losses else None)
        horizon = _from_here(plan, horizon, found, step)
    return horizon


def _from_here(plan: TrainPlan, before: Horizon, found: Horizon, step: int) -> Horizon:
    """Return the same decisions, as far as they are new, for what isn't given out yet."""
    if found.decay_from and not before.decay_from:
        return replace(found, decay_from=max(1, min(step, plan.trunk_steps)))
    if found.ended and not before.ended:
        return replace(found, ended=step if step < end_step(plan, before) else 0)
    return found
