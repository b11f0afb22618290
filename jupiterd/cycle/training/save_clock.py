"""When training is saved by the clock, whatever the plan's steps say.

Owns that decision. Doesn't know the clock (the time is handed in) or how a checkpoint is written.
A plan counts steps, and where they are slow, a hundred of them are minutes or hours of work. A
machine that trains alone and is killed loses all since its last checkpoint.
"""

from dataclasses import dataclass

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape

LEAST_S = 120.0
"""No sooner after the last one is another saved for the sake of time."""

BYTES_PER_S = 10_000_000
"""Large ones are saved so rarely that they take no more of a disk than that in the mean."""

BYTES_PER_PARAMETER = 12
"""Weights and both moments, in float32."""


def checkpoint_bytes(shape: ModelShape) -> int:
    """Return how large a checkpoint of a model is; one of smaller moments is smaller."""
    return BYTES_PER_PARAMETER * parameter_count(shape)


def save_interval_s(size_bytes: int) -> float:
    """Return how much time may be lost with a machine, but for the step that is under way."""
    return max(LEAST_S, size_bytes / BYTES_PER_S)


@dataclass
class SaveClock:
    """The time since the last checkpoint; times are monotonic, in seconds."""

    interval_s: float
    saved_s: float
    """When the last one was begun, or training was."""

    @classmethod
    def of(cls, shape: ModelShape, saved_s: float) -> "SaveClock":
        """Return the clock of a model's training."""
        return cls(save_interval_s(checkpoint_bytes(shape)), saved_s)

    def is_due(self, now_s: float) -> bool:
        """Say whether a checkpoint is due."""
        return now_s - self.saved_s >= self.interval_s

    def saved(self, now_s: float) -> None:
        """Take in that a checkpoint was begun."""
        self.saved_s = now_s
