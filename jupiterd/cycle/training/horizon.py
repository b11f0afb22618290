"""Where a training ends, as far as the losses on held-out text have decided it.

Owns the rules, and how much of the past they need. Doesn't know how a loss is measured, or who
records what was decided: every rank works out the same from the same losses, and a checkpoint is
recorded with what was decided by then, so that whoever goes on from it goes on with that.

    warm-up -> stable ---> d0 --> d1 --> d2 ...      while the loss falls from one place to the next
                            '-> decay, end           where it doesn't, the rate falls at once

1. The trunk ends at the first of the plan's places where the loss is no lower than at the place
   before it; at the last place whatever it is; and at once where the loss has risen for good.
2. A loss has risen for good that was above the best for MOST_WORSE measurements in a row, each time
   by more than RISE. While the rate falls, training ends there.
3. A plan that doesn't grow takes its steps, whatever the loss does: people asked for them.
4. Where nothing can be measured, the trunk ends at the first place.
5. Weights that were given are measured before the first step. They are the best, as if they were
   those of step 0, until a step has a lower loss.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.formats import is_worse

MOST_WORSE = 3
RISE = 0.01
"""Of the best loss."""


@dataclass(frozen=True)
class Horizon:
    """What is left of the measurements of one round; steps of 0 say that there was none."""

    step: int = 0
    loss: float = 0.0
    """The last measurement, in nats a token."""
    best_step: int = 0
    best_loss: float = 0.0
    worse: int = 0
    """Measurements in a row that lie above the best by more than RISE."""
    compared_loss: float = 0.0
    """At the last place where the trunk might have ended, or would have been compared."""
    decay_from: int = 0
    """Where the trunk has ended; 0: not yet."""
    ended: int = 0
    """Where training ended before the rate had fallen to nothing; 0: it didn't."""
    first_loss: float = 0.0
    """Of weights that were given, before the first step; 0: they weren't, or weren't measured."""
    bytes_per_token: float = 0.0
    """Of the text that is measured; 0: nobody knows."""

    @classmethod
    def of(cls, plain: Mapping[str, float]) -> Self:
        """Return what `to_plain` has returned; nothing of it where nothing is told."""

        def number(name: str) -> float:
            value = plain.get(name, 0.0)
            return value if math.isfinite(value) else 0.0

        return cls(
            step=int(number("step")),
            loss=number("loss"),
            best_step=int(number("best_step")),
            best_loss=number("best_loss"),
            worse=int(number("worse")),
            compared_loss=number("compared_loss"),
            decay_from=int(number("decay_from")),
            ended=int(number("ended")),
            first_loss=number("first_loss"),
            bytes_per_token=number("bytes_per_token"),
        )

    def to_plain(self) -> dict[str, float]:
        """Return it as numbers that travel; nothing where nothing was measured or decided."""
        return {name: float(value) for name, value in asdict(self).items() if value}

    @property
    def has_best(self) -> bool:
        """Say whether some weights are known to be the best."""
        return self.best_step > 0 or self.best_loss > 0

    @property
    def ends_worse(self) -> bool:
        """Say whether the weights that were measured last are worse than those that were given."""
        return self.step > 0 and is_worse(self.loss, self.first_loss)

    def begun(self, loss: float, bytes_per_token: float, *, may_decide: bool = True) -> "Horizon":
        """Return it with the loss of weights that were given, before the first step.

        may_decide: the text is none that the gate judges
        """
        known = replace(self, first_loss=loss, bytes_per_token=bytes_per_token)
        is_best = may_decide and not (self.has_best and self.best_loss < loss)
        return replace(known, best_step=0, best_loss=loss) if is_best else known

    @property
    def has_risen(self) -> bool:
        """Say whether the loss has risen for good."""
        return self.worse >= MOST_WORSE

    def measured(self, plan: TrainPlan, step: int, loss: float | None) -> "Horizon":
        """Return what is decided after a step; loss: on held-out text, None where there is none."""
        known = self if loss is None else self.with_loss(step, loss)
        if not plan.extends_by_steps or known.ended:
            return known
        if known.decay_from:
            is_early = known.has_risen and step < end_step(plan, known)
            return replace(known, ended=step) if is_early else known
        return known.with_trunk(plan, step, loss, self.compared_loss or self.loss)

    def with_loss(self, step: int, loss: float) -> "Horizon":
        """Return it with a measurement."""
        is_best = not self.has_best or loss < self.best_loss
        is_worse = not is_best and loss > self.best_loss * (1 + RISE)
        known = replace(self, step=step, loss=loss, worse=self.worse + 1 if is_worse else 0)
        return replace(known, best_step=step, best_loss=loss) if is_best else known

    def with_trunk(
        self, plan: TrainPlan, step: int, loss: float | None, before: float
    ) -> "Horizon":
        """Return it with the end of the trunk, or with what the next place is compared with.

        before: the loss at the place before, or the last one where there was no such place
        """
        is_place = plan.decides_after(step)
        falls = loss is not None and (not before or loss < before)
        ends = is_place and (not falls or step >= plan.trunk_steps)
        if ends or self.has_risen:
            return replace(self, decay_from=step)
        is_compared = is_place or plan.is_compared_after(step)
        return replace(self, compared_loss=loss) if is_compared and loss is not None else self


def end_step(plan: TrainPlan, horizon: Horizon) -> int:
    """Return after how many steps training ends: at the most, where that isn't decided yet."""
    if horizon.ended:
        return horizon.ended
    if not (plan.extends_by_steps and horizon.decay_from):
        return plan.steps
    return horizon.decay_from + plan.decay_after(horizon.decay_from)


def expected_steps(plan: TrainPlan, horizon: Horizon, step: int) -> int:
    """Return the steps of a training that doesn't grow at the next place, for people."""
    if not plan.extends_by_steps or horizon.decay_from or step >= plan.trunk_steps:
        return end_step(plan, horizon)
    beyond = max(0, step - plan.least_trunk_steps)
    place = plan.least_trunk_steps + -(-beyond // plan.extends_by_steps) * plan.extends_by_steps
    place = min(place, plan.trunk_steps)
    return place + plan.decay_after(place)


def is_over(plan: TrainPlan, horizon: Horizon, step: int) -> bool:
    """Say whether nothing is left to train after so many steps."""
    return step >= end_step(plan, horizon)


def is_on_trunk(plan: TrainPlan, horizon: Horizon, step: int) -> bool:
    """Say whether a later round may go on from what there is after so many steps."""
    return plan.is_on_trunk(step) and not 0 < horizon.decay_from < step


def schedule(plan: TrainPlan, horizon: Horizon) -> Schedule:
    """Return the learning rate's curve as it is decided so far: level where it isn't."""
    if not (plan.extends_by_steps and horizon.decay_from):
        return plan.schedule()
    decay = plan.decay_after(horizon.decay_from)
    steps = horizon.decay_from + decay
    return Schedule(plan.learning_rate, steps, plan.warmup_steps, decay)
