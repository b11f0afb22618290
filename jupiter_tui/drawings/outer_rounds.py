"""The islands of a round, and their exchanges: who contributed, how much, how long, who was late.

Pure. Owns the columns and the words. Doesn't know how islands exchange anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, table
from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line
from jupiter_tui.drawings.primitives.thresholds import NOTHING
from jupiter_tui.model.scene import Scene
from jupiterd.formats import duration, plain, size

SHOWN = 8

COLUMNS = (
    Column("number", "STEP", 5, 0, is_right=True),
    Column("who", "CONTRIBUTED", 12, 1, grows=True),
    Column("late", "LEFT OUT", 16, 2, grows=True),
    Column("took", "AFTER", 10, 3, is_right=True),
    Column("slowest", "SLOWEST TRAINED", 16, 4),
    Column("sent", "SENT", 10, 5, is_right=True),
    Column("steps", "OF STEPS", 8, 6, is_right=True),
)

STATE_TONES: Mapping[str, Tone] = {
    "training": Tone.GOOD,
    "in": Tone.NOTE,
    "starting": Tone.NOTE,
    "done": Tone.GOOD,
    "away": Tone.BAD,
    "failed": Tone.BAD,
}

Step = Mapping[str, Any]


def outer_rounds(scene: Scene, width: int, _height: int) -> Lines:
    """Return a line for each island, and a row for each exchange; nothing where one gang trains."""
    cycle = scene.view.cycle
    islands: Sequence[Mapping[str, Any]] = cycle.get("islands") or ()
    if not islands:
        return ()
    watched = scene.view.watched(outer_rounds_noun(str(cycle.get("id") or "")))
    found: Mapping[str, Any] = watched.document.get("outer_rounds") or {}
    steps: Sequence[Step] = found.get("steps") or ()
    rows = table(COLUMNS, [_row(step) for step in steps[:SHOWN]], width) if steps else _none(cycle)
    return (*(_island(row, scene) for row in islands), *rows)


def outer_rounds_noun(run: str) -> str:
    """Return what the daemon calls the exchanges of a run."""
    return f"outer_rounds/{run}"


def _none(cycle: Mapping[str, Any]) -> Lines:
    taken = cycle.get("outer_steps") or 0
    return (line(f"{taken} outer steps taken", Tone.FAINT),)


def _island(row: Mapping[str, Any], scene: Scene) -> Line:
    names = {node.get("id"): node.get("name") for node in scene.view.document.get("nodes", ())}
    where = ", ".join(plain(names.get(node) or node) for node in row.get("nodes") or ())
    state = plain(row.get("state"))
    rate = row.get("tokens_per_s")
    rate_text = "" if rate is None else f", {rate:,.0f} tokens/s"
    return (
        Cell(f"island {plain(row.get('island'))}  ", Tone.STRONG),
        Cell(f"{state:<9}", STATE_TONES.get(state, Tone.WARN)),
        Cell(f" step {row.get('step') or 0:,}{rate_text}  "),
        Cell(f"{plain(row.get('engine'))} on {where}", Tone.FAINT),
    )


def _row(step: Step) -> Row:
    parts: Sequence[Step] = step.get("contributed") or ()
    late: Sequence[Step] = step.get("left_out") or ()
    slowest = next((part for part in parts if part.get("is_slowest")), None)
    return {
        "number": Cell(plain(step.get("number"))),
        "who": Cell(", ".join(plain(part.get("island")) for part in parts) or "nobody"),
        "late": _late(late),
        "took": _time(step.get("elapsed_s")),
        "slowest": NOTHING if slowest is None else Cell(_slowest(slowest)),
        "sent": NOTHING if step.get("bytes") is None else Cell(size(step["bytes"])),
        "steps": Cell(plain(step.get("steps"))),
    }


def _late(late: Sequence[Step]) -> Cell:
    if not late:
        return Cell("nobody", Tone.FAINT)
    reasons = ", ".join(
        f"{plain(each.get('island'))} ({plain(each.get('reason'))})" for each in late
    )
    return Cell(reasons, Tone.WARN)


def _slowest(part: Step) -> str:
    return f"{plain(part.get('island'))}, {duration(part.get('trained_s') or 0.0)}"


def _time(seconds: float | None) -> Cell:
    return NOTHING if seconds is None else Cell(duration(seconds))
