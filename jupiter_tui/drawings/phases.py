"""The phases of the round that is shown, one below the other, and what is fetched for one.

Pure. Owns the columns and the words for counts and times. Doesn't know what a phase does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, table
from jupiter_tui.drawings.primitives.lines import Cell, Lines, Tone, line
from jupiter_tui.drawings.primitives.thresholds import PHASE_SIGNS
from jupiter_tui.model.scene import Scene
from jupiterd.cluster.text.fetch_words import fetch_words
from jupiterd.formats import duration, plain, rate
from jupiterd.protocol.preparing_stage import preparing_words

COLUMNS = (
    Column("phase", "PHASE", 10, 0),
    Column("state", "STATE", 7, 4),
    Column("count", "COUNT", 19, 1, grows=True),
    Column("elapsed", "ELAPSED", 10, 2, is_right=True),
    Column("eta", "TIME LEFT", 10, 3, is_right=True),
    Column("rate", "RATE", 9, 5, is_right=True),
    Column("detail", "", 16, 6, grows=True),
)

START = "jupiterctl cycle start --domain python --size 1m"
"""An example that every cluster can do."""

_EMPTY = Cell("")


def phases(scene: Scene, width: int, _height: int) -> Lines:
    """Return the phases of the cycle's present round, below the models that are fetched."""
    if not scene.view.document:
        return (line("nothing heard yet", Tone.FAINT),)
    return (*_fetches(scene), *_phases(scene, width))


def _fetches(scene: Scene) -> Lines:
    """Return a line for each model of the hub that a command on this machine fetches."""
    rows: Sequence[Mapping[str, Any]] = scene.view.document.get("fetches") or ()
    return tuple(line(f"from the hub: {fetch_words(row)}", _tone(row)) for row in rows)


def _tone(fetch: Mapping[str, Any]) -> Tone:
    return {"fetching": Tone.STRONG, "brought": Tone.GOOD}.get(str(fetch.get("state")), Tone.WARN)


def _phases(scene: Scene, width: int) -> Lines:
    cycle = scene.view.cycle
    if not cycle:
        hints = "no cycle has been started", f"{how_to_start(scene)}:", f"  {START}"
        return tuple(map(line, hints))
    return table(COLUMNS, [_row(row) for row in of_round(cycle)], width)


def how_to_start(scene: Scene) -> str:
    """Return what somebody can do who sees no cycle; the command is START."""
    shell = "type in a shell"
    return shell if scene.options.is_readonly else f"press 4 and then N, or {shell}"


def of_round(cycle: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the round that the cycle is in, else of its last one."""
    rows: Sequence[Mapping[str, Any]] = cycle.get("phases") or ()
    return [row for row in rows if row.get("round") == cycle.get("round")]


def amount(row: Mapping[str, Any]) -> str:
    """Return how much of a phase is done, such as `120 of 600 steps`."""
    done, total, unit = row.get("done") or 0, row.get("total") or 0, plain(row.get("unit") or " ")
    of_total = f" of {total:,}" if total and row.get("state") == "running" else ""
    return f"{done:,}{of_total} {unit}".rstrip()


def _row(row: Mapping[str, Any]) -> Row:
    state = plain(row.get("state"))
    sign, tone = PHASE_SIGNS.get(state, ("·", Tone.NORMAL))
    is_running = state == "running"
    return {
        "phase": Cell(f"{sign} {plain(row.get('phase'))}", tone),
        "state": Cell(state, tone),
        "count": _count(row, state, tone),
        "elapsed": _time(row.get("elapsed_s")),
        "eta": _time_left(row) if is_running else _EMPTY,
        "rate": Cell(rate(row["rate"])) if row.get("rate") else _EMPTY,
        "detail": Cell(
            plain(row.get("detail")) if row.get("detail") and state != "skipped" else "", Tone.FAINT
        ),
    }


def _count(row: Mapping[str, Any], state: str, tone: Tone) -> Cell:
    if state == "skipped":
        return Cell(plain(row.get("detail")), Tone.FAINT)
    if state == "running" and row.get("preparing"):
        return Cell(preparing_words(row["preparing"]), tone)
    if state == "running" and not row.get("done") and not row.get("total"):
        return Cell("preparing", tone)
    return _EMPTY if state == "waiting" else Cell(amount(row), tone)


def _time_left(row: Mapping[str, Any]) -> Cell:
    if stalled_s := row.get("stalled_s"):
        return Cell(f"stalled {duration(stalled_s)}", Tone.WARN)
    return _time(row.get("eta_s"))


def _time(seconds: float | None) -> Cell:
    return _EMPTY if seconds is None else Cell(duration(seconds))
