"""What one rank tells people about its run: lines in its log, and rank 0's curves.

Owns what is told when. Doesn't know how a line is written (`run_lines`), or a curve (`metrics`).
"""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from jupiterd.cycle.training.horizon import Horizon
from jupiterd.cycle.training.memory import flops_per_token
from jupiterd.cycle.training.peak_flops import utilisation
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.formats import bits_per_byte
from jupiterd.workers.train.loop import StepDone
from jupiterd.workers.train.report.metrics import Round, RunMetrics
from jupiterd.workers.train.report.run_lines import (
    Course,
    Numerics,
    RankLabel,
    best_lines,
    end_line,
    epoch_line,
    held_out_lines,
    initial_line,
    outer_line,
    start_lines,
    step_line,
)
from jupiterd.workers.training_engine import TrainingEngine


@dataclass(frozen=True)
class Curves:
    """Where a run's curves go, and what is said of them."""

    folder: Path | None
    round: int = 1
    gang_peak: float = 0.0
    """What the devices of all ranks can do at best, in operations per second; 0: nobody knows."""


class RunReport(AbstractContextManager["RunReport"]):
    """The report of one rank, from the first step of its attempt to the last."""

    def __init__(
        self,
        engine: TrainingEngine,
        shape: ModelShape,
        course: Course,
        node: str,
        curves: Curves,
        from_step: int,
    ) -> None:
        self._engine = engine
        self._work = flops_per_token(shape, engine.adapter)
        self._course = course
        self._place = RankLabel(engine.rank, engine.world_size, node, engine.device)
        self._folder = curves.folder if engine.rank == 0 else None
        self._round = Round(curves.round, course.batch * course.seq_len)
        is_alone = engine.world_size == 1
        self._peak = curves.gang_peak or (engine.peak_flops_per_s if is_alone else 0.0)
        self._from_step = from_step
        self._metrics: RunMetrics | None = None
        self._began_s = time.monotonic()
        self._losses: list[float] = []
        """Of this pass over the data, as far as this attempt has trained it."""
        self._reported = Horizon()

    def __enter__(self) -> Self:
        """Say what is trained, and on what."""
        if self._folder is not None:
            self._metrics = RunMetrics(self._folder, self._from_step, self._round)
        engine = self._engine
        options = engine.options
        numerics = Numerics(
            options.precision, options.autocast, options.scaler, options.documents_apart
        )
        for line in start_lines(self._place, engine.name, engine.gpus, numerics, self._course):
            _say(line)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the curves."""
        if self._metrics is not None:
            self._metrics.close()

    def step(self, done: StepDone, sync: str, horizon: Horizon, steps: int) -> None:
        """Tell of a step; after the last one of a pass, tell of the pass.

        steps: of the training, as far as it is decided
        """
        self._course = replace(self._course, steps=steps)
        _say(step_line(self._place, self._course, done.step, done.loss, done.tokens_per_s, sync))
        self._losses.append(done.loss)
        self._write(
            done.step,
            {
                "loss": done.loss,
                "tokens_per_s": done.tokens_per_s,
                "mfu": utilisation(done.tokens_per_s, self._work, self._peak),
                "grad_norm": done.grad_norm,
                "lr": done.learning_rate,
            },
        )
        if self._course.ends_pass(done.step):
            known = horizon.loss if horizon.step else None
            self._pass_done(done, known if done.held_out is None else done.held_out)
        elif done.held_out is not None:
            self._write(done.step, {"val_loss": done.held_out})
        if done.held_out is not None and horizon.step:
            self.decided(horizon)

    def report_initial(self, loss: float, horizon: Horizon) -> None:
        """Tell of weights that were given, before the first step."""
        self._write(0, {"val_loss": loss})
        self._print([initial_line(self._place, horizon)])
        self._reported = horizon

    def scored(self, step: int, loss: float) -> None:
        """Tell of the loss on held-out text of weights that islands have merged."""
        self._write(step, {"val_loss": loss})

    def decided(self, horizon: Horizon) -> None:
        """Tell what a measurement on held-out text has decided."""
        self._print(held_out_lines(self._place, horizon, self._reported))
        self._reported = horizon

    def outer_step(self, number: int, name: str, digest: bytes, pseudo_gradients: int) -> None:
        """Tell of an outer step that was taken, and of the weights and the momentum after it."""
        _say(outer_line(self._place, number, name, digest.hex(), pseudo_gradients))

    def finished(self, horizon: Horizon) -> None:
        """Say that all steps are done, and which of them is the best."""
        self._print(best_lines(self._place, horizon))
        _say(end_line(self._place))

    def _print(self, lines: Iterable[str]) -> None:
        if self._place.rank == 0:
            for line in lines:
                _say(line)

    def _pass_done(self, done: StepDone, val_loss: float | None) -> None:
        elapsed_s, self._began_s = time.monotonic() - self._began_s, time.monotonic()
        loss, self._losses = sum(self._losses) / len(self._losses), []
        if self._place.rank == 0:
            epoch = self._course.epoch_of(done.step - 1)
            _say(epoch_line(self._course, epoch, loss, val_loss, elapsed_s))
        row = {"train_loss": loss, "val_loss": done.held_out, "epoch_seconds": elapsed_s}
        self._write(done.step, row)

    def _write(self, step: int, readings: dict[str, Any]) -> None:
        if self._metrics is not None:
            self._metrics.write(step, readings, self._engine.memory_used_bytes())


RANKS_TOKENS_PER_S = "rank_tokens_per_s"
RANKS_SEQUENCES_PER_S = "rank_sequences_per_s"
"""What a rank does of the step, and what it did in each second that it computed: the readings that
aren't the same on every rank."""


def readings(done: StepDone, rank: int) -> dict[str, float]:
    """Return what the daemon is told of a step by a rank."""
    share = done.shares[rank] / max(1, sum(done.shares))
    return {
        "step": done.step,
        "loss": done.loss,
        "lr": done.learning_rate,
        "grad_norm": done.grad_norm,
        "tokens_per_s": done.tokens_per_s,
        RANKS_TOKENS_PER_S: done.tokens_per_s * share,
        RANKS_SEQUENCES_PER_S: done.rates[rank],
    }


def held_out_readings(horizon: Horizon) -> dict[str, float]:
    """Return what the daemon is told of the loss on development text; nothing without such text."""
    if not horizon.step:
        return in_bits(horizon)
    found: dict[str, float] = {
        "held_out": horizon.loss,
        "held_out_step": horizon.step,
        "best_held_out": horizon.best_loss,
        "best_step": horizon.best_step,
    }
    risen = {"risen": 1.0} if horizon.has_risen or horizon.ended else {}
    return found | risen | in_bits(horizon)


def in_bits(horizon: Horizon) -> dict[str, float]:
    """Return in bits per byte what is known of weights that were given, and of what they became."""
    losses = {
        "bits_per_byte_before": horizon.first_loss,
        "bits_per_byte": horizon.loss if horizon.first_loss else 0.0,
        "best_bits_per_byte": horizon.best_loss if horizon.first_loss else 0.0,
    }
    bits = {name: bits_per_byte(nats, horizon.bytes_per_token) for name, nats in losses.items()}
    return {name: value for name, value in bits.items() if value}


def course_of(shape: ModelShape, plan: TrainPlan, micro_batch: int, sequences: int) -> Course:
    """Return the course of a plan over so many sequences of data."""
    return Course(
        model=shape.size,
        d_model=shape.hidden,
        layers=shape.layers,
        heads=shape.heads,
        seq_len=shape.seq_len,
        micro_batch=micro_batch,
        batch=plan.batch_sequences,
        steps=plan.steps,
        steps_per_epoch=sequences / plan.batch_sequences,
    )


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the worker's log
