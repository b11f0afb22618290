"""The checkpoints of a training, the newest first, and on how many machines each lies.

Pure. Owns the columns. Doesn't know which checkpoints are retained, or who makes copies.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.loss import amount_of
from jupiter_tui.drawings.primitives.columns import Column, Row, table
from jupiter_tui.drawings.primitives.lines import Cell, Lines, Tone, line
from jupiter_tui.drawings.primitives.thresholds import NOTHING
from jupiter_tui.model.scene import Scene
from jupiterd.formats import plain
from jupiterd.ids import short

SHOWN = 8

COLUMNS = (
    Column("step", "STEP", 9, 0, is_right=True),
    Column("digest", "DIGEST", 8, 1),
    Column("copies", "COPIES", 18, 2, grows=True),
    Column("loss", "LOSS", 7, 3, is_right=True),
    Column("tokens", "TOKENS", 7, 4, is_right=True),
    Column("round", "ROUND", 5, 5, is_right=True),
    Column("what", "", 9, 6),
)


def checkpoints(scene: Scene, width: int, _height: int) -> Lines:
    """Return one row for each."""
    run = str(scene.view.cycle.get("id") or "")
    watched = scene.view.watched(checkpoints_noun(run))
    if not watched.document:
        return (
            line(plain(watched.trouble) if watched.trouble else "asking who has any", Tone.FAINT),
        )
    found: Mapping[str, Any] = watched.document.get("checkpoints") or {}
    rows: Sequence[Mapping[str, Any]] = found.get("rows") or ()
    if not rows:
        return (line("none yet", Tone.FAINT),)
    drawn = table(COLUMNS, [_row(row) for row in rows[:SHOWN]], width)
    more = max(len(rows) - SHOWN, 0) + (found.get("more") or 0)
    notes = [f"{more} older ones"] * bool(more)
    notes += [_silent(found["silent"])] * bool(found.get("silent"))
    return (*drawn, *((line(", ".join(notes), Tone.FAINT),) if notes else ()))


def checkpoints_noun(run: str) -> str:
    """Return what the daemon calls the checkpoints of a run."""
    return f"checkpoints/{run}"


def _silent(count: int) -> str:
    return "one node doesn't answer" if count == 1 else f"{count} nodes don't answer"


def _row(row: Mapping[str, Any]) -> Row:
    words = [f"island {row['island']}"] * bool(row.get("island"))
    words += ["final"] * bool(row.get("is_final"))
    loss, tokens = row.get("loss"), row.get("tokens")
    return {
        "step": Cell(f"{row.get('step') or 0:,}"),
        "digest": Cell(short(str(row.get("id") or ""))),
        "copies": _copies(row),
        "loss": NOTHING if loss is None else Cell(f"{loss:.3f}"),
        "tokens": NOTHING if tokens is None else Cell(amount_of(tokens)),
        "round": Cell(plain(row.get("round"))),
        "what": Cell(" ".join(words), Tone.FAINT),
    }


def _copies(row: Mapping[str, Any]) -> Cell:
    """Return on which nodes it lies; too few copies are a warning, unless it may be deleted."""
    names: Sequence[str] = row.get("copies") or ()
    wanted = row.get("copies_wanted") or 0
    if not names:
        return Cell("none" if wanted else "let go", Tone.BAD if wanted else Tone.FAINT)
    tone = Tone.WARN if len(names) < wanted else Tone.NORMAL
    return Cell(f"{len(names)}: {plain(', '.join(names))}", tone)
