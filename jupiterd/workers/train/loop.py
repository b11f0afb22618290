"""The training loop, for every engine.

Owns the order of a step: learning rate, engine step, exchange of the ranks' numbers, held-out
loss, report. Doesn't know how an engine computes a step, the gang's rendezvous, the daemon, or
files: what it needs of them comes in as `TrainingEngine`, `RankBatches` and callbacks.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from jupiterd.cycle.training.batch_shares import Balance, Shares, shares_among
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.errors import Bug, LossDivergedError
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.catch_up_rank import CatchUpRank
from jupiterd.workers.training_engine import TrainingEngine

WINDOW_STEPS = 20
"""Steps over which a checkpoint's loss and the tokens per second are averaged."""

NOT_BEGUN = (
    "no step was made yet: look whether the weights that it begins with are all numbers, or begin "
    "from none"
)


@dataclass(frozen=True)
class StepDone:
    """The result of a step; the same on every rank."""

    step: int
    """Steps of the round that are done."""
    loss: float
    """Mean cross-entropy over the step's global batch, in nats per token."""
    mean_loss: float
    """The mean of `loss` over the last WINDOW_STEPS steps."""
    learning_rate: float
    grad_norm: float
    """Euclidean norm of the gradient before clipping."""
    tokens_per_s: float
    """Of all ranks together."""
    shares: Shares
    """How the ranks share the next step."""
    rates: tuple[float, ...]
    """Sequences per second of each rank as it computed its share; 0: it had none."""
    is_last: bool
    """The last step is done, or a rank was asked to stop."""
    is_complete: bool = True
    """All ranks have the weights of this step; False while one still catches up."""
    held_out: float | None = None
    """Loss on development text after the step, in nats per token; None: it wasn't measured."""


class Watch(Protocol):
    """Measures the loss on development text and decides when training ends (`held_out_monitor`)."""

    @property
    def end_step(self) -> int:
        """Return the number of the last step, as far as it is decided."""
        ...

    @property
    def schedule(self) -> Schedule:
        """Return the learning rate schedule, as far as it is decided."""
        ...

    def after(self, step: int, shares: Shares, *, is_whole: bool) -> float | None:
        """Return the loss after `step` steps; None: none is due. All ranks call it together."""
        ...


@dataclass(frozen=True)
class TrainingLoop:
    """One rank's part in the steps of a round."""

    engine: TrainingEngine
    plan: TrainPlan
    batches: RankBatches
    stop_requested: Callable[[], bool]
    step_done: Callable[[StepDone], None]
    late: CatchUpRank | None = None
    """Fetches the other ranks' weights, where this rank begins without them."""
    late_ranks: Collection[int] = ()
    """Ranks that begin without the weights."""
    watch: Watch | None = None
    """Measures the loss on development text, and decides by it where training ends."""
    end_step: int | None = None
    """The last step; None: the watch or the plan decides."""
    shares: Shares | None = None
    """How the ranks share the first step; None: equally."""
    rate_factor: Callable[[int], float] = lambda _: 1.0
    """Step -> the factor by which its learning rate is multiplied."""
    wants_pause: Callable[[], bool] = lambda: False
    """Says whether this rank wants a pause; `run` returns once all ranks want one."""

    def run(self, first_step: int) -> None:
        """Train from `first_step` to the end, or until any rank is asked to stop.

        Raises:
            LossDivergedError: the loss or the gradient is no longer a number.
        """
        losses: deque[float] = deque(maxlen=WINDOW_STEPS)
        times: deque[float] = deque([time.monotonic()], maxlen=WINDOW_STEPS + 1)
        ranks, batch = self.engine.world_size, self.batches.batch_sequences
        self.engine.batch_sequences = batch
        here = tuple(rank not in self.late_ranks for rank in range(ranks))
        balance = Balance(batch, self.shares or shares_among(batch, here))
        step = first_step
        while step < self._end():
            learning_rate = self._schedule().learning_rate(step) * self.rate_factor(step)
            part, norm = self._step(step, balance.shares, learning_rate)
            parts, stops, rates, arrived, pauses = self._gathered(part, balance.shares)
            loss, stop = sum(parts), any(stops)
            balance.measured(rates)
            if here != (here := tuple(map(bool, arrived))):  # they share in the next step
                balance = Balance(batch, shares_among(batch, here))
            if not math.isfinite(loss) or math.isnan(norm):
                what = "loss" if not math.isfinite(loss) else "gradient"
                hint = NOT_BEGUN if step == 0 else ""
                raise LossDivergedError(f"the {what} is no longer a number at step {step}", hint)
            losses.append(loss)
            times.append(time.monotonic())
            step += 1
            held_out = self._held_out(step, balance.shares)
            self.step_done(
                StepDone(
                    step=step,
                    loss=loss,
                    mean_loss=sum(losses) / len(losses),
                    learning_rate=learning_rate,
                    grad_norm=norm,
                    tokens_per_s=self._rate(times),
                    shares=balance.shares,
                    rates=rates,
                    is_last=stop or step == self._end(),
                    is_complete=all(here),
                    held_out=held_out,
                )
            )
            if stop or all(pauses):
                return

    def _end(self) -> int:
        if self.end_step is not None:
            return self.end_step
        return self.plan.steps if self.watch is None else self.watch.end_step

    def _schedule(self) -> Schedule:
        return self.plan.schedule() if self.watch is None else self.watch.schedule

    def _held_out(self, step: int, shares: Shares) -> float | None:
        if self.watch is None:
            return None
        is_here = self.late is None or self.late.is_here
        return self.watch.after(step, shares, is_whole=is_here)

    def _step(self, step: int, shares: Shares, learning_rate: float) -> tuple[float, float]:
        """Take one step as `TrainingEngine.step` does; a rank without a share adds a zero."""
        if shares[self.engine.rank]:
            return self.engine.step(list(self.batches.of_step(step, shares)), learning_rate)
        if self.late is None:
            raise Bug("a rank that was there in time has no share")
        return self.late.step(
            [next(self.batches.of_step(step, (1,) * self.engine.world_size))], learning_rate
        )

    def _gathered(self, part: float, shares: Shares) -> Iterator[tuple[float, ...]]:
        """Exchange five numbers of each rank and return them by kind, each in the order of ranks.

        Part of the loss in nats, stop request, sequences per second, whether it has the weights,
        pause request.
        """
        rate = shares[self.engine.rank] / max(self.engine.computed_s, 1e-9)
        mine = [
            part,
            float(self.stop_requested()),
            rate,
            float(self.late is None or self.late.is_here),
            float(self.wants_pause()),
        ]
        return zip(*self.engine.gather(mine), strict=True)

    def _rate(self, times: deque[float]) -> float:
        tokens = (len(times) - 1) * self.batches.batch_sequences * self.batches.shards.seq_len
        return tokens / max(times[-1] - times[0], 1e-9)
