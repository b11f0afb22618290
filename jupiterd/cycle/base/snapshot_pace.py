"""How often a rank that trains alone copies its state into shared memory, by what a copy costs.

Owns that rule, and whether there is memory for the copies. Pure: seconds and bytes are handed in.
Doesn't know how a copy is made (`workers.train.checkpoints`).

A copy after each step where it takes no more than SPEED_SHARE of the time of a step; where it takes
longer, after so many steps that it does. A worker that dies loses the steps since then.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

SPEED_SHARE: Final = 0.02
"""Of the time of the steps, for copies."""

COPIES: Final = 2
"""Two are in memory: one is whole while the other is written."""

COPY_BYTES_PER_S: Final = 1e9
"""Of copying and the checksum, on one core that has other work to do; foretells only."""

TRIALS: Final = 4
"""So many copies are made before what they take is known well: the first ones touch new memory."""

TRIAL_SHARE: Final = 0.2
"""Of the time of the steps, for those."""

EVERY_STEPS: Final = "snapshot_every_steps"
"""The reading of a rank that says in how many steps one copy is made; 0: there is no room for any.
"""

_MEASURED_STEPS = 20
_MEASURED_COPIES = 8


def steps_between(copy_s: float, step_s: float, share: float = SPEED_SHARE) -> int:
    """Return how many steps one copy is made in, given what a copy and a step take, in seconds."""
    if step_s <= 0.0:
        return 1
    return max(1, math.ceil(copy_s / (share * step_s)))


def expected_copy_s(state_bytes: int) -> float:
    """Return how long a copy of so many bytes takes, as long as nobody has measured it."""
    return state_bytes / COPY_BYTES_PER_S


def has_room(free_bytes: int, still_needed_bytes: int, state_bytes: int) -> bool:
    """Say whether memory holds the copies, beside what the worker will still take."""
    return free_bytes - still_needed_bytes >= COPIES * state_bytes


def lost_words(every_steps: int) -> str:
    """Return what is lost when the worker dies that trains alone; 0: there are no copies."""
    if not every_steps:
        return "all since the last checkpoint, as memory has no room for copies of the state"
    return "at most a step" if every_steps == 1 else f"at most {every_steps:,} steps"


@dataclass
class SnapshotPace:
    """The measured times of one rank, in seconds, and the steps since its last copy."""

    _steps_s: deque[float] = field(default_factory=lambda: deque[float](maxlen=_MEASURED_STEPS))
    _copies_s: deque[float] = field(default_factory=lambda: deque[float](maxlen=_MEASURED_COPIES))
    _count: int = 0
    _since: int = 0
    """Steps since the last copy."""

    @property
    def every_steps(self) -> int:
        """Return how many steps one copy is made in; 1 before anything is measured."""
        from statistics import median  # with `random`: jupiterctl has no use for that

        if not (self._copies_s and self._steps_s):
            return 1
        share = SPEED_SHARE if self._count >= TRIALS else TRIAL_SHARE
        return steps_between(median(self._copies_s), median(self._steps_s), share)

    @property
    def is_due(self) -> bool:
        """Say whether a copy is due."""
        return self._since >= self.every_steps

    def stepped(self, step_s: float) -> None:
        """Take in a step."""
        self._since += 1
        self._steps_s.append(step_s)

    def begun(self) -> None:
        """Take in that a copy was begun."""
        self._since = 0

    def copied(self, copy_s: float) -> None:
        """Take in what a copy took; the first ones, of which more is new, soon don't count.

        copy_s: how long the training waited for it
        """
        self._count += 1
        if self._count == COPIES + 1:
            self._copies_s.clear()
        self._copies_s.append(copy_s)
