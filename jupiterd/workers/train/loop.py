"""The training loop, for every engine.

Owns the order of things around a step. Doesn't know how a step is computed (`engine`), the gang's
rendezvous, the daemon, or files: what it needs of them comes in as `Engine`, `Batches` and
callbacks.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jupiterd.cycle.plan import TrainPlan
from jupiterd.cycle.shares import Balance, Shares, equal_shares
from jupiterd.errors import LossDivergedError
from jupiterd.workers.train.batches import Batches
from jupiterd.workers.train.engine import Engine

WINDOW_STEPS = 20
"""Steps over which the loss of a checkpoint and the rate are averaged."""


@dataclass(frozen=True)
class StepDone:
    """What is known after a step; the same on every rank."""

    step: int
    """Steps of the round that are done."""
    cursor: int
    loss: float
    mean_loss: float
    """Over the last WINDOW_STEPS steps."""
    learning_rate: float
    grad_norm: float
    """Before clipping."""
    tokens_per_s: float
    """Of all ranks together."""
    shares: Shares
    """How the ranks share the next step."""
    is_last: bool
    """Nothing follows: the round is done, or a rank was told to stop."""


@dataclass(frozen=True)
class TrainingLoop:
    """One rank's part in the steps of a round."""

    engine: Engine
    plan: TrainPlan
    batches: Batches
    stop_requested: Callable[[], bool]
    step_done: Callable[[StepDone], None]

    def run(self, first_step: int) -> None:
        """Train from `first_step` to the end of the plan, or until any rank is told to stop.

        Raises:
            LossDivergedError: the loss or the gradient is no longer a number.
        """
        plan, schedule = self.plan, self.plan.schedule()
        losses: deque[float] = deque(maxlen=WINDOW_STEPS)
        times: deque[float] = deque([time.monotonic()], maxlen=WINDOW_STEPS + 1)
        ranks, batch = self.engine.world_size, plan.batch_sequences
        balance = Balance(batch, equal_shares(batch, ranks))
        for step in range(first_step, plan.steps):
            learning_rate = schedule.learning_rate(step)
            micro_batches = list(self.batches.at(step * batch, balance.shares))
            part, norm = self.engine.step(micro_batches, learning_rate)
            parts, stops, rates = self._told_by_all(part, balance.shares)
            loss, stop = sum(parts), any(stops)
            balance.measured(rates)
            if not math.isfinite(loss) or math.isnan(norm):
                what = "loss" if not math.isfinite(loss) else "gradient"
                raise LossDivergedError(f"the {what} is no longer a number at step {step}")
            losses.append(loss)
            times.append(time.monotonic())
            self.step_done(
                StepDone(
                    step=step + 1,
                    cursor=(step + 1) * batch,
                    loss=loss,
                    mean_loss=sum(losses) / len(losses),
                    learning_rate=learning_rate,
                    grad_norm=norm,
                    tokens_per_s=self._rate(times),
                    shares=balance.shares,
                    is_last=stop or step + 1 == plan.steps,
                )
            )
            if stop:
                return

    def _told_by_all(self, part: float, shares: Shares) -> Iterator[tuple[float, ...]]:
        """Return each rank's part of the loss, wish to stop, and sequences per second."""
        rate = shares[self.engine.rank] / max(self.engine.computed_s, 1e-9)
        return zip(*self.engine.gather([part, float(self.stop_requested()), rate]), strict=True)

    def _rate(self, times: deque[float]) -> float:
        tokens = (len(times) - 1) * self.plan.batch_sequences * self.batches.shards.seq_len
        return tokens / max(times[-1] - times[0], 1e-9)
