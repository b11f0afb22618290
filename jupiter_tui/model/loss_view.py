"""How the loss chart is shown: the x axis, the scale of y, and the smoothing.

Pure. Owns the choices, and which one follows another. Doesn't know any key.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Axis(StrEnum):
    """The quantity on the x axis."""

    STEP = "step"
    TOKENS = "tokens"
    TIME = "time"


SMOOTHINGS = (0.0, 0.6, 0.9, 0.97, 0.99)
"""Weights of the previous average in a moving average; 0: no smoothing."""


@dataclass(frozen=True)
class Look:
    """The settings of one loss chart."""

    axis: Axis = Axis.STEP
    is_log: bool = False
    smoothing: float = 0.9

    def with_next_axis(self) -> "Look":
        """Return it along the next axis."""
        axes = list(Axis)
        return replace(self, axis=axes[(axes.index(self.axis) + 1) % len(axes)])

    def with_other_scale(self) -> "Look":
        """Return it with the other scale of y."""
        return replace(self, is_log=not self.is_log)

    def smoother_by(self, by: int) -> "Look":
        """Return it with the smoothing `by` places further in SMOOTHINGS, within its ends."""
        place = SMOOTHINGS.index(self.smoothing) + by
        return replace(self, smoothing=SMOOTHINGS[min(max(place, 0), len(SMOOTHINGS) - 1)])
