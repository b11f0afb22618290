"""The line that names the screens and marks the one in front, for those who have a mouse.

Doesn't know what the screens show.
"""

from textual import events

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, width_of
from jupiter_tui.model.scene import Scene
from jupiter_tui.widgets.keys import SCREENS, Key
from jupiter_tui.widgets.panel import Panel

GAP = "  "


class TabLine(Panel):
    """Names the screens; a click on one brings it to the front, as its key does."""

    def __init__(self, front: str) -> None:
        """Take the name of the screen that is in front."""
        super().__init__("tabs", self._tabs, fades=False)
        self._front = front

    async def on_click(self, event: events.Click) -> None:
        """Bring a screen to the front."""
        offset = event.get_content_offset(self)
        key = None if offset is None else tab_at(offset.x)
        if key is not None:
            await self.app.run_action(key.action)

    def _tabs(self, _scene: Scene, _width: int, _height: int) -> Lines:
        return (tabs(self._front),)


def tabs(place: str) -> Line:
    """Return the screens with their keys; the one named `place` has brackets and another tone."""
    return tuple(
        Cell(f"[{words}]{GAP}", Tone.STRONG)
        if key.label.lower() == place
        else Cell(f" {words} {GAP}", Tone.FAINT)
        for key in SCREENS
        for words in (f"{key.shown[0]} {key.label}",)
    )


def tab_at(column: int) -> Key | None:
    """Return the screen whose name stands in a column; None outside of all names."""
    end = 0
    for key, cell in zip(SCREENS, tabs(""), strict=True):
        end += width_of((cell,))
        if column < end:
            return key
    return None
