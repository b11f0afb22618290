"""The line that names the screens, and marks the one in front.

Pure. Doesn't know what the screens show.
"""

from jupiter_tui.drawings.lines import Cell, Line, Tone
from jupiter_tui.keys import SCREENS

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
