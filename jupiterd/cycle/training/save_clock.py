"""When training is saved by the clock, whatever the plan's steps say.

Owns that decision. Doesn't know the clock (the time is handed in) or how a checkpoint is written.
A plan counts steps, and where they are slow, a hundred of them are minutes or hours of work. A
machine that trains alone and loses its power loses all since its last checkpoint.
"""

from dataclasses import dataclass

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape

LEAST_S = 120.0
"""No sooner after the last one is another saved for the sake of time: by a gang of machines."""

BYTES_PER_S = 10_000_000
"""Of the disk, in the mean: large ones are saved so rarely that they take no more."""

LEAST_ALONE_S = 30.0
"""The same of one machine, whose end nobody outlives that has the last step."""

BYTES_ALONE_PER_S = 50_000_000
"""What one machine may write, where nobody asked for a time."""

WAITING_SHARE = 0.05
"""Of the time that ranks take to write their parts of a checkpoint: training waits meanwhile."""

BYTES_PER_PARAMETER = 12
"""Weights and both moments, in float32."""


def checkpoint_bytes(shape: ModelShape) -> int:
    """Return how large a checkpoint of a model is; one of smaller moments is smaller."""
    return BYTES_PER_PARAMETER * parameter_count(shape)


def save_interval_s(size_bytes: int, asked_s: float = 0.0, *, is_alone: bool = False) -> float:
    """Return how much time may be lost with a machine, but for the step that is under way.

    asked_s: what somebody asked for, whatever the disk makes of it; 0: nobody did. is_alone: no
    other machine has the last step
    """
    least_s, most = (LEAST_ALONE_S, BYTES_ALONE_PER_S) if is_alone else (LEAST_S, BYTES_PER_S)
    return asked_s or max(least_s, size_bytes / most)


def joint_interval_s(waited_s: float) -> float:
    """Return how much time may be lost with a rank that holds a part nobody else has.

    waited_s: how long a rank's training waits while it writes its part
    """
    return max(LEAST_ALONE_S, waited_s / WAITING_SHARE)


def most_lost_s(interval_s: float, fetched_s: float) -> float:
    """Return how much time is lost at the most with a machine, its parts and all it has computed.

    interval_s: between two sets of parts; fetched_s: until the leader has all parts of one. Where
    that takes longer, the newest set is fetched next, as the one before it is recorded.
    """
    return interval_s + fetched_s * (1 if fetched_s <= interval_s else 2)


@dataclass
class SaveClock:
    """The time since the last checkpoint; times are monotonic, in seconds."""

    interval_s: float
    saved_s: float
    """When the last one was begun, or training was."""

    def took(self, seconds: float) -> None:
        """Take in how long training waited for the last one: a long wait comes rarely."""
        self.interval_s = joint_interval_s(seconds)

    def is_due(self, now_s: float) -> bool:
        """Say whether a checkpoint is due."""
        return now_s - self.saved_s >= self.interval_s

    def saved(self, now_s: float) -> None:
        """Take in that a checkpoint was begun."""
        self.saved_s = now_s
