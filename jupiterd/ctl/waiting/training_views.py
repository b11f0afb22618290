"""Further views of a training: loss curve, exchanges, checkpoints and completions.

Owns their options in `cycle status` and `train status`, and the texts. The daemon's documents hold
the data.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from jupiterd.cycle.base.snapshot_pace import EVERY_STEPS, lost_words
from jupiterd.formats import duration, plain, printable, size, table
from jupiterd.ids import short

VIEWS = ("curve", "outer_rounds", "checkpoints", "completions")
"""Nouns of the documents about a training; each is also the document's key."""

_OUTER = ("STEP", "OF STEPS", "CONTRIBUTED", "LEFT OUT", "SENT", "AFTER", "SLOWEST TRAINED")
"""Headers of the table of exchanges between islands. OF STEPS: inner steps since the last exchange;
AFTER: time since it."""

SEATS = ("RANK", "NODE", "DEVICE", "TOKENS/S", "SHARE")
PART = "HOLDS"
"""Of the model, where it is cut over the ranks."""

MOST_POINTS = 12
"""About how many rows of a curve are shown; JSON has all points."""

Row = Mapping[str, Any]


def view_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that request these views."""
    for option in (
        click.option("--completions", is_flag=True, help="With what its newest model writes."),
        click.option("--checkpoints", is_flag=True, help="With its checkpoints, and who has them."),
        click.option("--outer-rounds", is_flag=True, help="With the exchanges between islands."),
        click.option("--curve", is_flag=True, help="With the loss from the first step on."),
    ):
        function = option(function)
    return function


def views_of(state_dir: Path, run: Row | None, wanted: Mapping[str, bool]) -> dict[str, Any]:
    """Return the requested views by their nouns; empty if there is no training.

    Raises:
        JupiterError: a document can't be read.
    """
    names = [name for name in VIEWS if wanted.get(name)]
    if not run or not names:
        return {}
    from jupiterd.ctl.calls import ask_over_grpc

    return {name: ask_over_grpc(state_dir, f"{name}/{run['id']}")[name] for name in names}


def view_lines(views: Mapping[str, Any]) -> list[str]:
    """Return the lines of the requested views."""
    return [line for name, view in views.items() for line in ("", *_LINES[name](view))]


def training_lines(run: Row) -> list[str]:
    """Return the readings of a running training and the table of its ranks; empty without ranks."""
    seats: Sequence[Row] = run.get("gang") or ()
    if not seats:
        return []
    readings = [
        f"{label} " + ("N/A" if run.get(key) is None else form.format(factor * run[key]))
        for key, label, form, factor in _READINGS
    ]
    readings[1:1] = _held_out(run)
    is_cut = any(seat.get("part") is not None for seat in seats)
    headers = (*SEATS, PART) if is_cut else SEATS
    seat_rows = table(headers, [_seat(seat, is_cut=is_cut) for seat in seats])
    return [f"  {', '.join(readings)}", *_encrypted(run), *_lost(run), *_cut(run), *seat_rows]


def _cut(run: Row) -> list[str]:
    """Say what a model that is cut over ranks means for whoever loses one."""
    if not run.get("stage"):
        return []
    costs = "a machine that is lost costs what came since the last checkpoint"
    costs += ", beside an adapter a step at most"
    return [f"  cut over its ranks, stage {run['stage']}: {costs}"]


def _lost(run: Row) -> list[str]:
    """Say what the death of the only worker costs; nothing of several, who hold it all together."""
    found = (row.get("values") or {} for row in run.get("phases") or ())
    every = next((values[EVERY_STEPS] for values in found if EVERY_STEPS in values), None)
    return [] if every is None else [f"  if its worker dies it loses {lost_words(int(every))}"]


def _encrypted(run: Row) -> list[str]:
    """Return a line about the encryption between machines; empty for one machine."""
    match run.get("gang_encrypted"):
        case True:
            return ["  between the machines: encrypted"]
        case False:
            return ["  between the machines: not encrypted (--gang-encryption)"]
        case _:
            return []


def _held_out(run: Row) -> list[str]:
    """Return texts about the scores on held-out text; empty if there are none."""
    loss, best = run.get("held_out_loss"), run.get("best_step")
    if loss is None:
        before = run.get("bits_per_byte_before")
        return [] if before is None else [f"held out: {before:.4f} bits per byte before training"]
    parts = [f"held out {loss:.4f}"]
    if best is not None:
        parts.append(f"best at step {best:,}" if best else "best as it was given")
    now, before = run.get("bits_per_byte"), run.get("bits_per_byte_before")
    if now is None or before is None:
        return parts
    return [*parts, f"{now:.4f} bits per byte ({before:.4f} before training)"]


def _seat(seat: Row, *, is_cut: bool) -> list[object]:
    rate, share, part = seat.get("tokens_per_s"), seat.get("share"), seat.get("part")
    return [
        seat.get("rank"),
        name_of(seat),
        seat.get("device"),
        "N/A" if rate is None else f"{rate:,.0f}",
        "N/A" if share is None else f"{100 * share:.0f} %",
        *([f"{100 * part:.0f} %" if part is not None else "all"] if is_cut else []),
    ]


def name_of(row: Row) -> str:
    """Return the name of a row's machine, or its short id if an older daemon sends no name."""
    return plain(row.get("name") or short(str(row.get("node") or "")))


def _curve(view: Row) -> list[str]:
    points: Sequence[Sequence[Any]] = view["points"]
    if not points:
        return ["no curve yet"]
    every = max((len(points) + MOST_POINTS - 1) // MOST_POINTS, 1)
    shown = [*points[:-1:every], points[-1]]
    rows = [[f"{p[0]:,}", f"{p[1]:.4f}", _count(p[2]), _time(p[3])] for p in shown]
    headers = ["STEP", "LOSS", "TOKENS", "AFTER"]
    validation: Sequence[Sequence[Any]] = view["validation"]
    if validation:
        by_step = _validation_by_step([p[0] for p in shown], validation)
        headers.insert(2, "HELD OUT")
        rows = [
            [*row[:2], by_step.get(p[0], "-"), *row[2:]] for row, p in zip(rows, shown, strict=True)
        ]
    missing = view.get("missing") or ()
    notes = [f"without what these have written, who don't answer: {', '.join(missing)}"]
    lines = [*table(headers, rows), *_last_held_out(validation)]
    return [*lines, *(map(printable, notes) if missing else ())]


def _last_held_out(validation: Sequence[Sequence[Any]]) -> list[str]:
    """Return a line with the last and the lowest loss on held-out text; empty if there is none."""
    if not validation:
        return []
    last, best = validation[-1], min(validation, key=lambda p: p[1])
    lowest = f", lowest {best[1]:.4f} at step {best[0]:,}"
    return [f"held out: {last[1]:.4f} at step {last[0]:,}{lowest if best != last else ''}"]


def _validation_by_step(
    steps: Sequence[int], validation: Sequence[Sequence[Any]]
) -> dict[int, str]:
    """Return shown step -> the last held-out loss measured since the shown step before it."""
    found: dict[int, str] = {}
    for point in validation:
        step = next((step for step in steps if step >= point[0]), None)
        if step is not None:
            found[step] = f"{point[1]:.4f}"
    return found


def _outer_rounds(view: Row) -> list[str]:
    if not view["steps"]:
        return ["no exchange between islands yet"]
    rows = [
        [
            step["number"],
            step["steps"],
            ", ".join(str(part["island"]) for part in step["contributed"]) or "nobody",
            ", ".join(f"{each['island']} ({each['reason']})" for each in step["left_out"]) or "-",
            "N/A" if step["bytes"] is None else size(step["bytes"]),
            _time(step["elapsed_s"]),
            next((f"{p['island']}, {_time(p['trained_s'])}" for p in step["contributed"]
                  if p["is_slowest"]), "-"),
        ]
        for step in view["steps"]
    ]  # fmt: skip
    return table(_OUTER, rows)


def _checkpoints(view: Row) -> list[str]:
    if not view["rows"]:
        return ["no checkpoint yet"]
    rows = [
        [
            row["round"],
            f"{row['step']:,}",
            short(row["id"]),
            f"{row['loss']:.4f}",
            f"{row['tokens']:,}",
            f"{len(row['copies'])}: {', '.join(row['copies'])}" if row["copies"] else
            ("none" if row["copies_wanted"] else "let go"),
        ]
        for row in view["rows"]
    ]  # fmt: skip
    return table(("ROUND", "STEP", "DIGEST", "LOSS", "TOKENS", "COPIES"), rows)


def _completions(view: Row) -> list[str]:
    if not view["samples"]:
        return ["no model was tried out yet"]
    head = f"the model of round {view['round']} ({short(view['model'])}) writes"
    texts = [printable(f"{each['prompt']}{each['text']}") for each in view["samples"]]
    return [head, *(f"  {text}" for text in texts)]


def _count(number: int | None) -> str:
    return "N/A" if number is None else f"{number:,}"


def _time(seconds: float | None) -> str:
    return "N/A" if seconds is None else duration(seconds)


_LINES: Mapping[str, Callable[[Row], list[str]]] = {
    "curve": _curve,
    "outer_rounds": _outer_rounds,
    "checkpoints": _checkpoints,
    "completions": _completions,
}

_READINGS = (
    ("loss", "loss", "{:.4f}", 1.0),
    ("lr", "lr", "{:.3g}", 1.0),
    ("grad_norm", "grad norm", "{:.3f}", 1.0),
    ("tokens_per_s", "tokens/s", "{:,.0f}", 1.0),
    ("mfu", "MFU", "{:.1f} %", 100.0),
)
"""(key, label, format, factor) of each reading."""
