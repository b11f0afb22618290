"""How far the cycle is, in numbers.

Pure. Owns which readings are shown and their words; a reading that isn't there is N/A, never 0.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiter_tui.drawings.lines import Cell, Line, Lines, Tone, line
from jupiter_tui.drawings.phases import of_round
from jupiter_tui.drawings.thresholds import CYCLE_TONES, NOTHING
from jupiter_tui.scene import Scene
from jupiterd.formats import duration, plain
from jupiterd.ids import short

LABEL_WIDTH = 12
METER_WIDTH = 20


def readings(scene: Scene, _width: int, _height: int) -> Lines:
    """Return one line for each reading of the cycle."""
    cycle = scene.view.cycle
    if not cycle:
        return (line("no cycle", Tone.FAINT),)
    return tuple(_labelled(label, cells) for label, cells in _readings(cycle))


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
    yield "round", line(f"{plain(cycle.get('round'))} of {plain(cycle.get('rounds'))}")
    yield "step", _steps(cycle)
    yield "loss", _number(cycle.get("loss"), "{:.4f}", Tone.STRONG)
    yield "tokens/s", _number(cycle.get("tokens_per_s"), "{:,.0f}")
    yield "tokens", _number(cycle.get("tokens"), "{:,}")
    yield "time left", _time_left(cycle)
    yield "bits/byte", _number(cycle.get("val_bpb"), "{:.4f}")
    yield "epoch", _epoch(cycle)
    if cycle.get("model"):
        yield "model", line(plain(cycle["model"]))
    failure: Mapping[str, Any] = cycle.get("failure") or {}
    if failure:
        yield "failed", line(plain(failure.get("message")), Tone.BAD)
        yield "hint", line(plain(failure.get("hint")))


def _labelled(label: str, cells: Line) -> Line:
    return (Cell(f"{label:<{LABEL_WIDTH}}", Tone.FAINT), *cells)


def _number(value: float | None, form: str, tone: Tone = Tone.NORMAL) -> Line:
    return (NOTHING,) if value is None else (Cell(form.format(value), tone),)


def _steps(cycle: Mapping[str, Any]) -> Line:
    step, total = cycle.get("step") or 0, cycle.get("total_steps")
    if not total:
        return line(f"{step:,}")
    share = f"  {100 * step / total:.0f} %"
    return (
        Cell(f"{step:,} of {total:,}  "),
        Cell(meter(step, total, METER_WIDTH), Tone.GOOD),
        Cell(share),
    )


def _time_left(cycle: Mapping[str, Any]) -> Line:
    """Return what is left of the running phase; nobody knows that of a whole cycle."""
    for row in of_round(cycle):
        if row.get("state") == "running" and row.get("eta_s") is not None:
            return line(f"{duration(row['eta_s'])} of {plain(row.get('phase'))}")
    return (NOTHING,)


def _epoch(cycle: Mapping[str, Any]) -> Line:
    if not cycle.get("epoch"):
        return (NOTHING,)
    resumed = cycle.get("resumed_from_step")
    return line(f"{cycle['epoch']}, from step {resumed:,}" if resumed else f"{cycle['epoch']}")
