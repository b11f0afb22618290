"""Who trains just now.

Pure. Owns the columns. Doesn't know how a gang comes about.
"""

from jupiter_tui.drawings.columns import Column, table
from jupiter_tui.drawings.lines import Cell, Lines, Tone, line
from jupiter_tui.drawings.thresholds import NOTHING
from jupiter_tui.scene import Scene
from jupiterd.formats import plain
from jupiterd.ids import short

COLUMNS = (
    Column("rank", "RANK", 4, 0, is_right=True),
    Column("node", "NODE", 10, 1, grows=True),
    Column("engine", "ENGINE", 6, 2),
    Column("device", "DEVICE", 6, 3),
    Column("pid", "PID", 7, 4, is_right=True),
)


def gang(scene: Scene, width: int, _height: int) -> Lines:
    """Return one row for each rank."""
    seats = scene.view.cycle.get("gang") or ()
    if not seats:
        return (line("nobody trains just now", Tone.FAINT),)
    names = {node.get("id"): node.get("name") for node in scene.view.document.get("nodes", ())}
    rows = [
        {key: _cell(seat.get(key)) for key in ("rank", "engine", "device", "pid")}
        | {"node": _cell(names.get(seat.get("node")) or short(str(seat.get("node", ""))))}
        for seat in seats
    ]
    return table(COLUMNS, rows, width)


def _cell(value: object) -> Cell:
    return NOTHING if value is None or value == "" else Cell(plain(value))
