"""Samples that a phase has kept and dropped, to choose from.

Pure. Owns the columns. What samples say is somebody else's text: nothing of it steers the terminal.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, listed
from jupiter_tui.drawings.primitives.lines import Cell, Tone, line
from jupiter_tui.drawings.primitives.listing import Choice, Listing
from jupiter_tui.model.scene import Scene
from jupiterd.formats import plain
from jupiterd.ids import short

COLUMNS = (
    Column("id", "SAMPLE", 8, 0),
    Column("fate", "FATE", 16, 1),
    Column("kind", "KIND", 10, 4),
    Column("source", "FROM", 24, 3, grows=True),
    Column("text", "TEXT", 30, 2, grows=True),
)

SORTS = ("fate", "from")
LONGEST_TEXT = 200

Document = Mapping[str, Any]


def samples(scene: Scene, choice: Choice, width: int, noun: str) -> Listing:
    """Return a row for each sample, what was kept first."""
    watched = scene.view.watched(noun)
    found: Document = watched.document.get("review") or {}
    if not found:
        return Listing((), (), (line(plain(watched.trouble or "asking for them"), Tone.FAINT),))
    rows = sorted(_rows(found), key=lambda row: _order(row[1], choice.sort))
    none = () if rows else (line("nobody in reach has samples of it", Tone.FAINT),)
    return listed(COLUMNS, dict(rows), width, foot=none)


def _rows(found: Document) -> Iterator[tuple[str, Row]]:
    for sample in found.get("kept_samples") or ():
        yield _row(sample, Cell("kept", Tone.GOOD))
    for sample in found.get("dropped_samples") or ():
        yield _row(sample, Cell(plain(sample.get("reason") or "dropped"), Tone.WARN))


def _row(sample: Document, fate: Cell) -> tuple[str, Row]:
    text = " ".join(str(sample.get("text") or "").split())[:LONGEST_TEXT]
    return str(sample.get("id")), {
        "id": Cell(short(str(sample.get("id"))), Tone.STRONG),
        "fate": fate,
        "kind": Cell(plain(sample.get("kind"))),
        "source": Cell(plain(sample.get("source_uri"))),
        "text": Cell(plain(text)),
    }


def _order(row: Row, sort: str) -> str:
    return {"fate": row["fate"].text, "from": row["source"].text}.get(sort, "")
