"""What happened in the cluster, the newest first, to choose from.

Pure. Owns the columns. Doesn't know what counts as an event.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, listed
from jupiter_tui.drawings.primitives.lines import Cell, Lines, Tone, line, wrapped
from jupiter_tui.drawings.primitives.listing import Choice, Listing
from jupiter_tui.drawings.primitives.thresholds import SEVERITY_TONES
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiterd.cluster.values.severity import LEVELS, rank
from jupiterd.formats import plain
from jupiterd.ids import short

EVENTS = Source("events")

COLUMNS = (
    Column("at", "TIME", 8, 1),
    Column("level", "LEVEL", 7, 2),
    Column("code", "CODE", 16, 3),
    Column("text", "WHAT HAPPENED", 30, 0, grows=True),
)

Document = Mapping[str, Any]


NOTHING_HEARD = "asking the daemon what happened"


def happened(scene: Scene, _choice: Choice, width: int, least: str) -> Listing:
    """Return a row for each event that is at least so grave."""
    watched = scene.view.watched(EVENTS.noun)
    found = [
        row for row in watched.document.get("events") or () if rank(row.get("level")) >= rank(least)
    ]
    if not found:
        words = watched.trouble or (
            _nothing(watched.document, least) if watched.document else NOTHING_HEARD
        )
        return Listing((), (), (line(plain(words), Tone.FAINT),))
    return listed(COLUMNS, {str(row.get("seq")): _row(row) for row in reversed(found)}, width)


def whole_event(scene: Scene, width: int, key: str | None) -> Lines:
    """Return the chosen event's whole text, and where Enter leads from it."""
    found = event_of(scene.view.watched(EVENTS.noun).document, key or "")
    if not found:
        return ()
    text = tuple(line(part) for part in wrapped(plain(found.get("text")), width, "  "))
    return (*text, line(_next_step(scene, found), Tone.FAINT))


def event_of(document: Document, key: str) -> Document:
    """Return the event of a row; an empty one where it has gone."""
    found = (row for row in document.get("events") or () if str(row.get("seq")) == key)
    return next(found, {})


def _next_step(scene: Scene, event: Document) -> str:
    if node := event.get("node"):
        names = {each.get("id"): each.get("name") for each in scene.view.document.get("nodes", ())}
        return f"enter shows {plain(names.get(node) or short(str(node)))}"
    return "enter shows the cycles" if event.get("cycle") else "of the whole cluster"


def _nothing(document: Document, least: str) -> str:
    graver = "" if least == LEVELS[0] else f" from {least} on"
    return f"nothing happened yet{graver} since {_clock(document.get('since'))}"


def _row(row: Document) -> Row:
    level = plain(row.get("level"))
    return {
        "at": Cell(_clock(row.get("at")), Tone.FAINT),
        "level": Cell(level, SEVERITY_TONES.get(level, Tone.NOTE)),
        "code": Cell(plain(row.get("code"))),
        "text": Cell(plain(row.get("text"))),
    }


def _clock(at: object) -> str:
    try:
        return f"{datetime.fromisoformat(str(at)).astimezone():%H:%M:%S}"
    except ValueError:
        return plain(None)
