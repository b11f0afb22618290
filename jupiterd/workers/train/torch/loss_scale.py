"""The factor that keeps small gradients from vanishing in fp16, as torch's GradScaler moves it.

Owns the factor. Doesn't know engines: it is told whether a gradient overflowed. (torch's own class
is tied to one optimizer of torch's, reads the gradients once more, and can't be asked for what a
checkpoint needs without pickling.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

FIRST = 65_536.0
GROWTH_STEPS = 2_000
"""Good steps after which the factor is doubled."""

SMALLEST = 2.0**-14
"""Gradients that overflow even at this factor are no overflow of fp16: they are no numbers."""


@dataclass
class LossScale:
    """The factor, and what moves it."""

    factor: float = 1.0
    good_steps: int = 0
    """Since the factor was moved."""
    left_out: int = 0
    """Steps that changed nothing, because the gradient had overflowed."""
    is_on: bool = False

    def turn_on(self) -> None:
        """Begin to scale, unless a checkpoint said by how much."""
        if not self.is_on:
            self.is_on, self.factor = True, FIRST

    def step_left_out(self) -> None:
        """Take a smaller factor: the gradient overflowed."""
        self.factor, self.good_steps, self.left_out = self.factor / 2, 0, self.left_out + 1

    def step_taken(self) -> None:
        """Take a larger factor after enough good steps."""
        self.good_steps += 1
        if self.is_on and self.good_steps >= GROWTH_STEPS:
            self.factor, self.good_steps = self.factor * 2, 0

    def state(self) -> tuple[float, float, float]:
        """Return what a checkpoint keeps."""
        return self.factor, float(self.good_steps), float(self.left_out)

    def load(self, state: Sequence[float]) -> None:
        """Go on from what a checkpoint kept."""
        factor, good_steps, left_out = state
        self.factor, self.good_steps, self.left_out = float(factor), int(good_steps), int(left_out)
        self.is_on = True
