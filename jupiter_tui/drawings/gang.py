"""Who trains just now: how fast each machine is, and how much of the work it does.

Pure. Owns the columns and the bars. Doesn't know how a gang is formed, or how work is shared out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, table
from jupiter_tui.drawings.primitives.lines import Cell, Lines, Tone, line
from jupiter_tui.drawings.primitives.thresholds import NOTHING
from jupiter_tui.model.scene import Scene
from jupiterd.formats import plain
from jupiterd.ids import short

BAR_WIDTH = 10
WIDE_BAR_WIDTH = 24
WIDE = 80
"""Columns from which on bars are longer."""

Seat = Mapping[str, Any]


def gang(scene: Scene, width: int, _height: int) -> Lines:
    """Return one row for each machine."""
    seats: Sequence[Seat] = scene.view.cycle.get("gang") or ()
    if not seats:
        return (line("nobody trains just now", Tone.FAINT),)
    names = {node.get("id"): node.get("name") for node in scene.view.document.get("nodes", ())}
    rates = [seat.get("tokens_per_s") for seat in seats]
    total = sum(rate for rate in rates if rate is not None)
    nodes = dict.fromkeys((seat.get("node"), seat.get("island")) for seat in seats)
    bar_width = WIDE_BAR_WIDTH if width >= WIDE else BAR_WIDTH
    rows = [
        _row(
            [seat for seat in seats if (seat.get("node"), seat.get("island")) == place],
            plain(names.get(place[0]) or short(str(place[0] or ""))),
            total,
            bar_width,
        )
        for place in nodes
    ]
    has_parts = any(seat.get("part") is not None for seat in seats)
    has_islands = any(island for _, island in nodes)
    return table(_columns(bar_width, has_islands, has_parts), rows, width)


def bar_of(share: float, width: int) -> str:
    """Return a share of 1 as a bar."""
    filled = min(max(round(share * width), 0), width)
    return "█" * filled + "░" * (width - filled)


def _columns(bar_width: int, has_islands: bool, has_parts: bool) -> tuple[Column, ...]:  # noqa: FBT001
    island = (Column("island", "ISLAND", 6, 3, is_right=True),) if has_islands else ()
    part = (Column("part", "HOLDS", 5, 3, is_right=True),) if has_parts else ()
    return (
        Column("node", "NODE", 10, 0, grows=True),
        *island,
        Column("rate", "TOKENS/S", 9, 1, is_right=True),
        Column("share", "SHARE", bar_width + 6, 2),
        *part,
        Column("device", "DEVICE", 8, 4),
        Column("engine", "ENGINE", 6, 5),
        Column("ranks", "RANKS", 5, 6),
        Column("pid", "PID", 7, 7, is_right=True),
    )


def _row(seats: Sequence[Seat], name: str, total: float, bar_width: int) -> Row:
    """Return a machine with all its ranks."""
    rates = [seat.get("tokens_per_s") for seat in seats]
    known = [rate for rate in rates if rate is not None]
    rate = sum(known) if len(known) == len(rates) else None
    return {
        "node": Cell(name, Tone.STRONG),
        "island": _cell(seats[0].get("island")),
        "rate": NOTHING if rate is None else Cell(f"{rate:,.0f}"),
        "share": NOTHING if rate is None or total <= 0 else _bar(rate / total, bar_width),
        "part": _part(seats),
        "device": _cell(_counted([plain(seat.get("device")) for seat in seats])),
        "engine": _cell(seats[0].get("engine")),
        "ranks": _cell(_counted([plain(seat.get("rank")) for seat in seats])),
        "pid": _cell(seats[0].get("pid") if len(seats) == 1 else None),
    }


def _part(seats: Sequence[Seat]) -> Cell:
    """Return how much of the model a machine holds, where it is cut over ranks."""
    parts = [part for seat in seats if (part := seat.get("part")) is not None]
    return Cell(f"{100 * sum(parts):.0f} %") if parts else NOTHING


def _bar(share: float, width: int) -> Cell:
    return Cell(f"{bar_of(share, width)} {100 * share:3.0f} %", Tone.GOOD)


def _counted(words: Sequence[str]) -> str:
    """Return what all have in common, or the first and how many more."""
    different = list(dict.fromkeys(words))
    return different[0] if len(different) == 1 else f"{different[0]} +{len(different) - 1}"


def _cell(value: object) -> Cell:
    return NOTHING if value is None or value == "" else Cell(plain(value))
