"""The learning rate as a pure function of the step: warm-up, stable, decay.

Owns the shape of that curve. Doesn't know optimizers, nor who asks.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """One round's curve: up in a line, level, and down in a line to nothing.

    The level part is the trunk: the next round goes on from its end, without a rise. The part that
    falls is this round's branch (warm-up, stable, decay: MiniCPM, arXiv 2404.06395).
    """

    peak: float
    steps: int
    """Steps of the round; the last one that trains is `steps - 1`."""
    warmup_steps: int
    decay_steps: int

    def learning_rate(self, step: int) -> float:
        """Return the rate for `step` (from 0); never 0 before `steps`, 0 from then on."""
        rising = (step + 1) / self.warmup_steps if self.warmup_steps else 1.0
        falling = (self.steps - step) / self.decay_steps if self.decay_steps else 1.0
        if step >= self.steps:
            return 0.0
        return self.peak * min(1.0, rising, falling)

    def distance(self, first_step: int, steps: int) -> float:
        """Return the sum of the rates of so many steps: how far Adam gets in them, to a factor."""
        last = first_step + steps
        return sum(self.learning_rate(step) for step in range(max(0, first_step), last))


@dataclass(frozen=True)
class Ramp:
    """Up in a line to the curve, for an optimizer that knows nothing, in the middle of a round."""

    first_step: int
    steps: int

    def factor(self, step: int) -> float:
        """Return the part of the curve's rate that `step` (from 0) has."""
        return max(0.0, min(1.0, (step - self.first_step + 1) / self.steps))

    def is_over(self, step: int) -> bool:
        """Say whether it changes nothing from `step` on."""
        return self.factor(step) == 1.0
