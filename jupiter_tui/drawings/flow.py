"""What went into each phase of a round, what came out, and what was left out and why.

Pure. Owns the columns. Doesn't know how anything was counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.phases import START, how_to_start
from jupiter_tui.drawings.primitives.columns import Column, Row, table
from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line, wrapped
from jupiter_tui.drawings.primitives.thresholds import NOTHING, PHASE_SIGNS
from jupiter_tui.model.scene import Scene
from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.formats import plain
from jupiterd.ids import short

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
        warning = "no cycle has collected anything yet", f"{how_to_start(scene)}: {START}"
        return tuple(
            line(part, Tone.FAINT) for each in warning for part in wrapped(each, width, "  ")
        )
    newest = max(row.get("round") or 0 for row in rows)
    shown = [_row(row) for row in rows if (row.get("round") or 0) >= newest - 1]
    generators = [_generator(row, scene) for row in cycle.get("generators") or ()]
    heavy = (f"round {plain(row['round'])} {plain(row['told'])}" for row in _heavy(cycle))
    warned = [line(part, Tone.WARN) for warning in heavy for part in wrapped(warning, width, "  ")]
    return (*table(COLUMNS, shown, width), *warned, *generators)


def _heavy(cycle: Document) -> Sequence[Document]:
    """Return the phases that dropped more than half."""
    return cycle.get("heavy_drops") or ()


def share_of(dropped: Mapping[str, int], most: int = 4) -> str:
    """Return how many were dropped, and the commonest reasons."""
    named = [f"{reason_words(reason)} {count:,}" for reason, count in list(dropped.items())[:most]]
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


def _generator(row: Document, scene: Scene) -> Line:
    names = {node.get("id"): node.get("name") for node in scene.view.document.get("nodes", ())}
    name = plain(names.get(row.get("node")) or short(str(row.get("node") or "")))
    rates = f"{row.get('tokens_per_s') or 0:,.0f} tokens/s, "
    accepted = f"{row.get('accepted_per_min') or 0:,.0f} samples/min accepted"
    return Cell(f"{name} generates ", Tone.FAINT), Cell(rates + accepted)


def _count(value: int | None) -> Cell:
    return NOTHING if value is None else Cell(f"{value:,}")
