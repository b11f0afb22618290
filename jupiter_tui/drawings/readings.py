"""How far the cycle is, in numbers.

Pure. Owns which readings are shown and their words; a reading that isn't there is N/A, never 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.loss import known_loss
from jupiter_tui.drawings.phases import of_round
from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line, width_of
from jupiter_tui.drawings.primitives.thresholds import CYCLE_TONES, NOTHING
from jupiter_tui.model.loss_history import smoothed
from jupiter_tui.model.loss_view import Axis, Look
from jupiter_tui.model.scene import Scene
from jupiterd.formats import duration, plain
from jupiterd.ids import short

LABEL_WIDTH = 11
METER_WIDTH = 20
GAP = 2
COLUMN = 25
"""What a short reading takes with its label, where two stand side by side."""

HOW_MFU = "MFU: tokens/s x FLOP of a token / peak at 16 bits"
"""See `cycle.training.memory.flops_per_token` and `cycle.training.peak_flops`."""


def readings(look: Look, scene: Scene, width: int, _height: int) -> Lines:
    """Return the readings, a line each; short ones stand side by side where there is room."""
    cycle = scene.view.cycle
    if not cycle:
        return (line("no cycle yet", Tone.FAINT),)
    long = [_labelled(label, cells) for label, cells in _readings(cycle)]
    short_ones = [_labelled(label, cells) for label, cells in _figures(scene, look)]
    folded = _side_by_side(short_ones, 2 if width >= 2 * COLUMN + GAP else 1)
    return (*long, *folded)


def meter(done: int, total: int, width: int) -> str:
    """Return how much is done as a bar."""
    filled = min(width * done // total, width) if total > 0 else 0
    return "█" * filled + "░" * (width - filled)


def _readings(cycle: Mapping[str, Any]) -> Iterator[tuple[str, Line]]:
    state = plain(cycle.get("state"))
    name = f"{plain(cycle.get('domain'))} ({short(str(cycle.get('id', '')))}), "
    yield "cycle", (Cell(name), Cell(state, CYCLE_TONES.get(state, Tone.NORMAL)))
    paused: Mapping[str, Any] = cycle.get("paused") or {}
    if paused:
        by = paused.get("reason") if paused.get("asks") else f"by {paused.get('name')}"
        yield "paused", line(f"{plain(by)} at {plain(paused.get('at'))}", Tone.WARN)
        yield "go on", line(f"jupiterctl cycle resume {short(str(cycle.get('id', '')))}")
    yield "round", _round(cycle)
    yield "step", _steps(cycle)
    yield "time left", _time_left(cycle)
    if cycle.get("model"):
        yield "model", line(plain(cycle["model"]))
    failure: Mapping[str, Any] = cycle.get("failure") or {}
    if failure:
        yield "failed", line(plain(failure.get("message")), Tone.BAD)
        yield "hint", line(plain(failure.get("hint")))


def _figures(scene: Scene, look: Look) -> Iterator[tuple[str, Line]]:
    """Yield what fits into half a line."""
    cycle, known = scene.view.cycle, known_loss(scene)
    points = known.along(Axis.STEP)
    mean = smoothed(points, look.smoothing)[-1][1] if points else None
    held_out = known.validations[-1].loss if known.validations else None
    yield "loss", _number(cycle.get("loss"), "{:.4f}", Tone.STRONG)
    yield "smoothed", _number(mean, "{:.4f}")
    yield "held out", _held_out(held_out, cycle.get("best_step"))
    yield "bits/byte", _bits(cycle)
    yield "lr", _number(cycle.get("lr"), "{:.3g}")
    yield "grad norm", _number(cycle.get("grad_norm"), "{:.3f}")
    rate, predicted = _speeds(cycle)
    yield "tokens/s", _number(rate, "{:,.0f}")
    yield "predicted", _number(predicted, "{:,.0f}")
    yield "tokens", _number(cycle.get("tokens"), "{:,}")
    yield "MFU", _mfu(cycle)


def _held_out(loss: float | None, best_step: float | None) -> Line:
    """Return the loss on held-out text, and the step at which it was lowest."""
    if loss is None or best_step is None:
        return _number(loss, "{:.4f}")
    return (Cell(f"{loss:.4f}"), Cell(f"  best {best_step:,}", Tone.FAINT))


def _bits(cycle: Mapping[str, Any]) -> Line:
    """Return the bits per byte of held-out text, now and before training of given weights."""
    scored, before = cycle.get("val_bpb"), cycle.get("bits_per_byte_before")
    if before is None:
        return _number(scored, "{:.4f}")
    now = cycle.get("bits_per_byte")
    number = _number(now, "{:.4f}", Tone.BAD if now is not None and now > before else Tone.GOOD)
    return (*number, Cell(f"  before {before:.4f}", Tone.FAINT))


def _speeds(cycle: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return measured and predicted tokens per second, of training alone, also after its end."""
    rate = cycle.get("tokens_per_s")
    if cycle.get("phase") not in {None, "train"}:
        return rate, None
    measured = cycle.get("measured_tokens_per_s")
    return measured if rate is None else rate, cycle.get("predicted_tokens_per_s")


def _mfu(cycle: Mapping[str, Any]) -> Line:
    mfu = cycle.get("mfu")
    return (NOTHING,) if mfu is None else (Cell(f"{100 * mfu:.1f} %"),)


def _side_by_side(lines: Sequence[Line], columns: int) -> Lines:
    """Return lines in so many columns, row by row."""
    rows = [lines[at : at + columns] for at in range(0, len(lines), columns)]
    return tuple(_in_columns(row) for row in rows)


def _in_columns(row: Sequence[Line]) -> Line:
    cells: list[Cell] = []
    for place, each in enumerate(row):
        if place:
            cells.append(Cell(" " * max(COLUMN + GAP - width_of(tuple(cells)), GAP)))
        cells += each
    return tuple(cells)


def _labelled(label: str, cells: Line) -> Line:
    return (Cell(f"{label:<{LABEL_WIDTH}}", Tone.FAINT), *cells)


def _number(value: float | None, form: str, tone: Tone = Tone.NORMAL) -> Line:
    return (NOTHING,) if value is None else (Cell(form.format(value), tone),)


def _steps(cycle: Mapping[str, Any]) -> Line:
    step, total = cycle.get("step"), cycle.get("total_steps")
    if step is None or not total:
        return _number(step, "{:,}")
    share = f"  {100 * step / total:.0f} %"
    return (
        Cell(f"{step:,} of {total:,}  "),
        Cell(meter(step, total, METER_WIDTH), Tone.GOOD),
        Cell(share),
    )


def _time_left(cycle: Mapping[str, Any]) -> Line:
    """Return the time left of the running phase; it isn't known for a whole cycle."""
    for row in of_round(cycle):
        if row.get("state") == "running" and row.get("stalled_s"):
            return line(f"stalled for {duration(row['stalled_s'])}", Tone.WARN)
        if row.get("state") == "running" and row.get("eta_s") is not None:
            return line(f"{duration(row['eta_s'])} of {plain(row.get('phase'))}")
    return (NOTHING,)


def _round(cycle: Mapping[str, Any]) -> Line:
    """Return which round it is, and its gang's attempt once a gang has begun."""
    words = f"{plain(cycle.get('round'))} of {plain(cycle.get('rounds'))}"
    if not cycle.get("epoch"):
        return line(words)
    resumed = cycle.get("resumed_from_step")
    since = f", from step {resumed:,}" if resumed else ""
    encrypted = ", encrypted" if cycle.get("gang_encrypted") else ""
    stage = f", cut in stage {cycle['stage']}" if cycle.get("stage") else ""
    attempt = cycle.get("attempt_in_round") or cycle["epoch"]
    return line(f"{words}, attempt {attempt}{since}{encrypted}{stage}")
