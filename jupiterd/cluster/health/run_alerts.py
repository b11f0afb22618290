"""What is wrong with the trainings that run just now, by what their leader tells of them.

Owns one trend for each, and what it means. Pure: it is handed the time. Doesn't know for how long
anything must hold (`alerts`), or what a jump is (`loss_trend`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.cluster.health.loss_trend import LossTrend
from jupiterd.formats import counted
from jupiterd.ids import CycleId


@dataclass(frozen=True)
class LiveTraining:
    """One training as it is told of just now."""

    run: CycleId
    round: int
    name: str
    """As people call it."""
    step: int
    loss: float | None
    risen_since_step: int | None = None
    """The step with the lowest loss on held-out text, where that has risen for good since."""


class RunAlerts:
    """The trends of all trainings that run."""

    def __init__(self) -> None:
        self._trends: dict[tuple[CycleId, int], LossTrend] = {}

    def look(self, now_s: float, running: Sequence[LiveTraining]) -> list[AlertCondition]:
        """Return what is wrong; what runs no more is forgotten."""
        by_run = {(each.run, each.round): each for each in running}
        self._trends = {key: self._trends.get(key, LossTrend(now_s)) for key in by_run}
        return [
            finding
            for key, each in by_run.items()
            for finding in _of_training(now_s, each, self._trends[key])
        ]


def _of_training(
    now_s: float, training: LiveTraining, trend: LossTrend
) -> Iterator[AlertCondition]:
    loss = training.loss
    if loss is not None and not math.isfinite(loss):
        yield AlertCondition(
            "loss-nan", training.run, training.name, "its loss is no longer a number"
        )
        loss = None
    trend.note(now_s, training.step, loss)
    if (still_s := trend.stands_still_s(now_s)) is not None:
        yield AlertCondition(
            "stalled-step", training.run, training.name, counted(round(still_s / 60), "minute")
        )
    if trend.has_jumped and trend.loss is not None:
        detail = f"{trend.loss:.3f}, from {trend.usual:.3f}"
        yield AlertCondition("loss-spike", training.run, training.name, detail)
    if trend.is_far_above_first and trend.loss is not None:
        detail = f"{trend.loss:.3f}, and began with {trend.first:.3f}"
        yield AlertCondition("loss-high", training.run, training.name, detail)
    if training.risen_since_step is not None:
        detail = f"step {training.risen_since_step:,}"
        yield AlertCondition("held-out-risen", training.run, training.name, detail, cause=detail)
