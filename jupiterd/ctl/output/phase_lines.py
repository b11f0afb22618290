"""The phases of a round as a table: how much went in, came out and was dropped, and why.

Pure. Owns the columns and their texts. Doesn't know what a phase does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.ctl.output.progress_lines import shown_values
from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.formats import duration, plain, rate, table
from jupiterd.ids import short
from jupiterd.protocol.preparing_stage import preparing_words

HEADERS = ("PHASE", "STATE", "IN", "OUT", "RATE", "TIME LEFT", "DROPPED")
MOST_REASONS = 4
"""The highest number of reasons that a line names; the others are summed up."""

Cycle = Mapping[str, Any]
Row = Mapping[str, Any]


def phase_lines(cycle: Cycle) -> list[str]:
    """Return the table of the cycle's current round; empty if it has no phases yet."""
    current = cycle.get("round")
    rows: Sequence[Row] = [row for row in cycle.get("phases", []) if row.get("round") == current]
    return [*table(HEADERS, [_cells(row) for row in rows]), *_readings(rows)] if rows else []


def _readings(rows: Sequence[Row]) -> list[str]:
    """Return a line of readings, such as loss and speed, for each running phase that has any."""
    running = ((row, _readings_of(row)) for row in rows if row.get("state") == "running")
    return [f"{plain(row.get('phase'))}: {', '.join(values)}" for row, values in running if values]


def _readings_of(row: Row) -> list[str]:
    preparing = row.get("preparing")
    return [*([preparing_words(preparing)] if preparing else []), *shown_values(row)]


def dropped_line(dropped: Mapping[str, int], most: int = MOST_REASONS) -> str:
    """Return how many samples were dropped and why, such as `12: duplicate 9, too-short 3`."""
    named = [f"{reason_words(reason)} {count:,}" for reason, count in list(dropped.items())[:most]]
    rest = sum(list(dropped.values())[most:])
    reasons = ", ".join([*named, *([f"others {rest:,}"] if rest else [])])
    return f"{sum(dropped.values()):,}: {reasons}" if dropped else ""


def heavy_drop_lines(cycle: Cycle) -> list[str]:
    """Return a line for each phase that dropped too much, and the command that shows it."""
    drops: Sequence[Row] = cycle.get("heavy_drops") or ()
    lines = [f"attention: round {plain(row['round'])} {plain(row['told'])}" for row in drops]
    shows = f"jupiterctl data samples --dropped {short(str(cycle.get('id') or ''))}"
    return [*lines, *([f"hint: {shows.rstrip()}"] if lines else [])]


def _cells(row: Row) -> list[str]:
    is_running = row.get("state") == "running"
    is_training = row.get("phase") == "train"
    return [
        plain(row.get("phase")),
        plain(row.get("state")),
        _number(row.get("in"), _TRAINED[0] if is_training else ""),
        _out(row) if is_running else _number(row.get("out"), _TRAINED[1] if is_training else ""),
        rate(row["rate"]) if row.get("rate") else "-",
        _time_left(row) if is_running else "-",
        dropped_line(row.get("dropped") or {}) or "-",
    ]


def _time_left(row: Row) -> str:
    """Return how long a running phase takes yet, or for how long nothing has moved in it."""
    if stalled_s := row.get("stalled_s"):
        return f"stalled for {duration(stalled_s)}"
    eta_s = row.get("eta_s")
    return "-" if eta_s is None else duration(eta_s)


_TRAINED = "sequences", "steps"
"""Units of what goes into training and comes out; other phases count samples."""


def _number(value: int | None, unit: str = "") -> str:
    if value is None:
        return "-"
    return f"{value:,} {unit.removesuffix('s') if value == 1 else unit}".rstrip()


def _out(row: Row) -> str:
    """Return the progress of a running phase: amount done, total and unit."""
    of_total = f" of {row['total']:,}" if row.get("total") else ""
    return f"{row.get('done') or 0:,}{of_total} {plain(row.get('unit') or ' ')}".rstrip()
