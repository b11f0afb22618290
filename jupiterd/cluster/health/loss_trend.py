"""The trend of one training, from the steps and losses that it reports.

Owns when the loss has jumped and when training stands still. Pure: the caller passes the time.
Doesn't know who is notified (`alerts`).
"""

from collections import deque
from statistics import median
from typing import Final

FIRSTS: Final = 3
"""Readings that a training begins with."""
COMPARED_LOSSES: Final = 50
"""The number of latest losses that a new one is compared with."""
LEAST: Final = 20
"""With fewer losses nothing is decided: at the start a loss falls fast and varies much."""
SPREADS: Final = 8.0
"""A jump is this many median absolute deviations above the median loss."""
SHARE: Final = 0.15
"""A jump is also at least this share of the median loss, since a steady loss may vary a little."""
FAR_ABOVE: Final = 0.2
"""A loss is far above the initial one by this share of it."""
IN_A_ROW: Final = 2
"""Readings above the limit that make a jump; a single one may be an unlucky batch."""

STALL_S: Final = 120.0
"""Seconds without a step. A stuck gang restarts within seconds; after this long that has failed."""
STEPS_LONG: Final = 10.0
"""Step times without a step, where that is longer than STALL_S."""
FIRST_STEP_S: Final = 900.0
"""Until the first step, models are fetched and compiled."""


class LossTrend:
    """The losses and step times of one round's training, from its first reading on."""

    def __init__(self, now_s: float) -> None:
        self._losses: deque[float] = deque(maxlen=COMPARED_LOSSES)
        self._step: int | None = None
        self._has_moved = False
        self._moved_s = now_s
        self._step_s = 0.0
        self._high = 0
        self._firsts: list[float] = []
        self.usual = 0.0
        """The median loss that the newest was compared with."""

    def note(self, now_s: float, step: int, loss: float | None) -> None:
        """Take a reading; one of a step that was reported before is ignored."""
        if step == self._step:
            return
        if self._step is not None and step > self._step:
            self._step_s = (now_s - self._moved_s) / (step - self._step)
            self._has_moved = True
        self._step, self._moved_s = step, now_s
        if loss is not None:
            self._note_loss(loss)

    def _note_loss(self, loss: float) -> None:
        """Compare a loss with those before it, then add it: a lasting level becomes usual."""
        is_high = False
        if len(self._losses) >= LEAST:
            self.usual = median(self._losses)
            spread = median(abs(each - self.usual) for each in self._losses)
            is_high = loss > self.usual + max(SPREADS * spread, SHARE * abs(self.usual))
        self._high = self._high + 1 if is_high else 0
        self._losses.append(loss)
        if len(self._firsts) < FIRSTS:
            self._firsts.append(loss)

    @property
    def has_jumped(self) -> bool:
        """Say whether the latest losses lie far above those before them."""
        return self._high >= IN_A_ROW

    @property
    def first(self) -> float | None:
        """The loss that it began with, as far as one reading after another tells."""
        return median(self._firsts) if self._firsts else None

    @property
    def is_far_above_first(self) -> bool:
        """Say whether the usual loss by now lies far above the one that it began with."""
        if self.first is None or len(self._losses) < LEAST:
            return False
        latest = median([*self._losses][-LEAST // 2 :])
        return latest > self.first + FAR_ABOVE * abs(self.first)

    @property
    def loss(self) -> float | None:
        """The newest loss."""
        return self._losses[-1] if self._losses else None

    def stands_still_s(self, now_s: float) -> float | None:
        """Return the seconds since the last step where they are too many; else None."""
        allowed_s = max(STALL_S, STEPS_LONG * self._step_s) if self._has_moved else FIRST_STEP_S
        still_s = now_s - self._moved_s
        return still_s if still_s > allowed_s else None
