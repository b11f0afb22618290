"""The line that names the screens, and marks the one in front.

Pure. Doesn't know what the screens show.
"""

from jupiter_tui.drawings.primitives.lines import Cell, Line, Tone, width_of
from jupiter_tui.widgets.keys import SCREENS, Key

GAP = "  "


def tabs(place: str) -> Line:
    """Return the screens with their keys; the one at `place` stands out by brackets and colour."""
    return tuple(
        Cell(f"[{words}]{GAP}", Tone.STRONG)
        if key.label.lower() == place
        else Cell(f" {words} {GAP}", Tone.FAINT)
        for key in SCREENS
        for words in (f"{key.shown[0]} {key.label}",)
    )


def tab_at(column: int) -> Key | None:
    """Return the screen whose name stands in a column; None beside all of them."""
    end = 0
    for key, cell in zip(SCREENS, tabs(""), strict=True):
        end += width_of((cell,))
        if column < end:
            return key
    return None
