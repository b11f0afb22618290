"""How somebody wants to see the loss: over what, on which scale, how smooth.

Pure. Owns the choices that there are, and the way from one to the next. Doesn't know any key.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Axis(StrEnum):
    """What a chart goes along."""

    STEP = "step"
    TOKENS = "tokens"
    TIME = "time"


SMOOTHINGS = (0.0, 0.6, 0.9, 0.97, 0.99)
"""How much of the average before stays in the next one; 0: none, the points as they are."""


@dataclass(frozen=True)
class Look:
    """One way to see it."""

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
        """Return it as much smoother, or with less than 0 rougher, as there is."""
        place = SMOOTHINGS.index(self.smoothing) + by
        return replace(self, smoothing=SMOOTHINGS[min(max(place, 0), len(SMOOTHINGS) - 1)])
