"""What one rank prints about its run, for people who read its log.

Pure: values come in, lines go out. Doesn't know where they are printed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupiterd.cycle.training.horizon import Horizon
from jupiterd.formats import bits_per_byte


@dataclass(frozen=True)
class RankLabel:
    """Which rank this is, and where it runs."""

    rank: int
    world_size: int
    node: str
    device: str

    @property
    def tag(self) -> str:
        """Return what every line of this rank begins with."""
        return f"[Rank {self.rank}/{self.world_size} | Node {self.node} | Device {self.device}]"


@dataclass(frozen=True)
class Numerics:
    """What the rank computes in."""

    precision: str
    autocast: bool
    scaler: bool
    documents_apart: bool
    """No token sees another document of its sequence."""

    def line(self) -> str:
        """Return it in the words that people of the field use."""
        on = {True: "ON", False: "OFF"}
        scaler = on[self.scaler]
        apart = " | Documents apart" if self.documents_apart else ""
        autocast = on[self.autocast]
        return f"Precision {self.precision} | Autocast={autocast} | GradScaler={scaler}{apart}"


@dataclass(frozen=True)
class Course:
    """The model, and the steps that it is trained in."""

    model: str
    d_model: int
    layers: int
    heads: int
    seq_len: int
    micro_batch: int
    """Sequences of this rank in memory at a time."""
    batch: int
    """Sequences of one step, over all ranks."""
    steps: int
    steps_per_epoch: float
    """Steps of one pass over the data."""

    @property
    def epochs(self) -> int:
        """Return how many passes are begun."""
        return self.epoch_of(self.steps - 1)

    def ends_pass(self, step: int) -> bool:
        """Say whether a pass is over once so many steps are done, or training is."""
        return step == self.steps or self.epoch_of(step) > self.epoch_of(step - 1)

    def epoch_of(self, step: int) -> int:
        """Return in which pass (from 1) the step (from 0) begins."""
        return int(step / self.steps_per_epoch) + 1


def start_lines(
    place: RankLabel, engine: str, gpus: Sequence[str], numerics: Numerics, course: Course
) -> list[str]:
    """Return what a rank says before its first step; rank 0 also says what is trained."""
    owned = ", ".join(gpus) or "none"
    lines = [
        f"{place.tag} Engine {engine} | World size {place.world_size} | GPUs {owned}",
        f"{place.tag} {numerics.line()}",
    ]
    if place.rank == 0:
        lines += [f"{place.tag} {line}" for line in _course_lines(course, place.world_size)]
    return lines


def step_line(
    place: RankLabel, course: Course, step: int, loss: float, tokens_per_s: float, sync: str
) -> str:
    """Return the line of a step (from 1) that is done."""
    return (
        f"{place.tag} Epoch {course.epoch_of(step - 1)} | Step {step} | Loss {loss:.4f} | "
        f"tok/s {tokens_per_s:,.0f} | Sync={sync}"
    )


def epoch_line(
    course: Course, epoch: int, train_loss: float, val_loss: float | None, elapsed_s: float
) -> str:
    """Return the line of a pass over the data that is done."""
    validated = "N/A" if val_loss is None else f"{val_loss:.4f}"
    return (
        f"Epoch {epoch}/{course.epochs} | Train loss {train_loss:.4f} | Val loss {validated} | "
        f"{elapsed_s:.1f}s"
    )


def outer_line(place: RankLabel, number: int, name: str, digest: str, pseudo_gradients: int) -> str:
    """Return the line of an outer step: all islands' ranks have the same digest after it.

    name: of the step; groups that are apart take different ones of the same number
    """
    return f"{place.tag} Outer step {number} ({name}) | Ways {pseudo_gradients} | Digest {digest}"


def end_line(place: RankLabel) -> str:
    """Return what a rank says when it has done its last step and all weights are the same."""
    return f"{place.tag} Training finished. Gradients in sync."


def initial_line(place: RankLabel, horizon: Horizon) -> str:
    """Return what is said of weights that were given, before the first step."""
    return f"{place.tag} Held out: {_bits(horizon, horizon.first_loss)} before training"


def held_out_lines(place: RankLabel, now: Horizon, before: Horizon) -> Iterator[str]:
    """Yield what a measurement on held-out text tells, and what is decided by it."""
    beside = f" | {_with_initial(now, now.loss)}" if now.first_loss else ""
    yield f"{place.tag} Step {now.step} | Held-out loss {now.loss:.4f} | {_best(now)}{beside}"
    if now.decay_from and not before.decay_from:
        why = "has risen for good" if now.has_risen else "falls no more from pass to pass"
        yield (
            f"{place.tag} The held-out loss {why}: the learning rate falls from step "
            f"{now.decay_from} on"
        )
    if now.ended and not before.ended:
        yield f"{place.tag} The held-out loss has risen for good: training ends early"


def best_lines(place: RankLabel, horizon: Horizon) -> Iterator[str]:
    """Yield what is said at the end of the weights that count; nothing without held-out text."""
    if not horizon.step:
        return
    if horizon.ends_worse:
        yield f"{place.tag} Ended worse than it began: {_with_initial(horizon, horizon.loss)}"
    elif horizon.first_loss:
        yield f"{place.tag} Held out: {_with_initial(horizon, horizon.best_loss)}"
    yield f"{place.tag} Held-out loss {horizon.best_loss:.4f}, {_best(horizon)}"


def _best(horizon: Horizon) -> str:
    if horizon.first_loss and not horizon.best_step:
        return "best as the weights were given"
    return f"best at step {horizon.best_step}"


def _with_initial(horizon: Horizon, loss: float) -> str:
    """Return a loss beside that of the weights that were given."""
    return f"{_bits(horizon, loss)} ({_bits(horizon, horizon.first_loss)} before training)"


def _bits(horizon: Horizon, loss: float) -> str:
    bits = bits_per_byte(loss, horizon.bytes_per_token)
    return f"{bits:.4f} bits per byte" if bits else f"loss {loss:.4f}"


def _course_lines(course: Course, ranks: int) -> list[str]:
    accumulation = math.ceil(course.batch / (course.micro_batch * ranks))
    shape = f"d_model={course.d_model}, layers={course.layers}, heads={course.heads}"
    batch = f"Batch per device {course.micro_batch} | Accumulation {accumulation}"
    length = f"Total steps {course.steps} | Steps per epoch {course.steps_per_epoch:,.1f}"
    return [
        f"Model {course.model}: {shape}, seq_len={course.seq_len}",
        f"{batch} | Effective batch {course.batch}",
        f"{length} | Epochs {course.epochs}",
    ]
