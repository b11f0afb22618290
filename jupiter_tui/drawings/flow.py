"""What went into each phase of a round, what came out, and what was left out and why.

Pure. Owns the columns. Doesn't know how anything was counted.
"""

from collections.abc import Mapping
from typing import Any

from jupiter_tui.drawings.columns import Column, Row, table
from jupiter_tui.drawings.lines import Cell, Lines, Tone, line
from jupiter_tui.drawings.thresholds import NOTHING, PHASE_SIGNS
from jupiter_tui.scene import Scene
from jupiterd.formats import plain

COLUMNS = (
    Column("round", "ROUND", 5, 3, is_right=True),
    Column("phase", "PHASE", 10, 0),
    Column("into", "IN", 9, 2, is_right=True),
    Column("out", "OUT", 9, 1, is_right=True),
    Column("dropped", "DROPPED, AND WHY", 30, 4, grows=True),
    Column("detail", "DETAIL", 30, 5, grows=True),
)

OF_TEXT = ("collect", "generate", "filter", "pack")
"""Phases through which text goes."""

Document = Mapping[str, Any]


def flow(scene: Scene, width: int, _height: int) -> Lines:
    """Return a row for each phase of the newest rounds through which text went."""
    cycle: Document = scene.view.document.get("cycle") or {}
    rows = [row for row in cycle.get("phases") or () if row.get("phase") in OF_TEXT]
    if not rows:
        return (line("no cycle has collected anything yet", Tone.FAINT),)
    newest = max(row.get("round") or 0 for row in rows)
    shown = [_row(row) for row in rows if (row.get("round") or 0) >= newest - 1]
    return (*table(COLUMNS, shown, width), *map(_generator, cycle.get("generators") or ()))


def share_of(dropped: Mapping[str, int], most: int = 4) -> str:
    """Return how many were dropped, and the commonest reasons."""
    named = [f"{reason} {count:,}" for reason, count in list(dropped.items())[:most]]
    return f"{sum(dropped.values()):,}: {', '.join(named)}" if dropped else ""


def _row(row: Document) -> Row:
    _, tone = PHASE_SIGNS.get(str(row.get("state")), ("", Tone.NORMAL))
    return {
        "round": Cell(plain(row.get("round")), Tone.FAINT),
        "phase": Cell(plain(row.get("phase")), tone),
        "into": _count(row.get("in")),
        "out": _count(row.get("out")),
        "dropped": Cell(plain(share_of(row.get("dropped") or {}) or " ").strip()),
        "detail": Cell(plain(row.get("detail") or " ").strip()),
    }


def _generator(row: Document) -> tuple[Cell, ...]:
    rates = f"{row.get('tokens_per_s') or 0:,.0f} tokens/s, "
    accepted = f"{row.get('accepted_per_min') or 0:,.0f} samples/min accepted"
    return (Cell(f"{plain(str(row.get('node', ''))[:8])} generates ", Tone.FAINT),
            Cell(rates + accepted))  # fmt: skip


def _count(value: int | None) -> Cell:
    return NOTHING if value is None else Cell(f"{value:,}")
