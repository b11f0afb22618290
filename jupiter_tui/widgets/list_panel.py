"""A part of a screen that shows a list of which one row can be chosen.

Owns the choice, and the keys and clicks that move it. Doesn't know what the rows say.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message

from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.drawings.primitives.listing import (
    NO_MARK,
    Choice,
    ListDrawing,
    Listing,
    drawn,
    filtered,
    selected_place,
)
from jupiter_tui.model.scene import Scene
from jupiter_tui.widgets.panel import Panel


class ListPanel(Panel, can_focus=True):
    """Shows a list; up and down choose, Enter opens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Opened(Message):
        """Somebody wants to see more of the chosen row."""

        def __init__(self, panel: "ListPanel", key: str) -> None:
            super().__init__()
            self.panel = panel
            self.key = key

    class Chosen(Message):
        """Another row may be the chosen one."""

    def __init__(
        self,
        place: str,
        drawing: ListDrawing,
        *,
        title: str = "",
        legend: str = "",
        sorts: Sequence[str] = (),
    ) -> None:
        """Take a name, what to draw, and the orders that it offers in addition to its own."""
        super().__init__(place, self._lines, title=title, legend=legend)
        self._list_drawing = drawing
        self._legend = legend
        self._sorts = ("", *sorts)
        self._choice = Choice()
        self._place: int | None = None
        self._listing = Listing((), ())

    @property
    def selected(self) -> str | None:
        """Return the key of the chosen row; None where there is no row."""
        return None if self._place is None else self._listing.rows[self._place].key

    def filter_by(self, words: str) -> None:
        """Show only the rows in which every word occurs."""
        self._choose(replace(self._choice, filter=words))

    def sort_by_next(self) -> None:
        """Put the rows in the next order that the list offers."""
        at = self._sorts.index(self._choice.sort)
        self._choose(replace(self._choice, sort=self._sorts[(at + 1) % len(self._sorts)]))

    def action_move(self, by: int) -> None:
        """Choose another row."""
        if self._place is None:
            return
        place = min(max(self._place + by, 0), len(self._listing.rows) - 1)
        self._choose(replace(self._choice, selected=self._listing.rows[place].key))
        line = len(self._listing.head) + (self._place or 0)
        top = 0 if self._place == 0 else line
        self.parent_scroll(Region(0, self.virtual_region.y + 1 + top, 1, line - top + 1))

    def parent_scroll(self, region: Region) -> None:
        """Bring a part of the body into view."""
        self.screen.query_one("#body").scroll_to_region(region, animate=False)

    def action_open(self) -> None:
        """Say that somebody wants to see more of the chosen row."""
        if self.selected is not None:
            self.post_message(self.Opened(self, self.selected))

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the pointer; open it where it is chosen already."""
        offset = event.get_content_offset(self)
        at = -1 if offset is None else offset.y - len(self._listing.head)
        if not 0 <= at < len(self._listing.rows):
            return
        key = self._listing.rows[at].key
        if key == self.selected and event.chain > 1:
            self.action_open()
        self._choose(replace(self._choice, selected=key))

    def _choose(self, choice: Choice) -> None:
        self._choice = choice
        parts = [f"filter: {choice.filter}"] if choice.filter else []
        parts += [f"by {choice.sort}"] if choice.sort else []
        # People type what they like; it isn't markup.
        self.border_subtitle = Content("; ".join([*parts, self._legend] if self._legend else parts))
        self._draw()
        self.post_message(self.Chosen())

    def _lines(self, scene: Scene, width: int, _height: int) -> Lines:
        whole = self._list_drawing(scene, self._choice, width - len(NO_MARK))
        self._listing = filtered(whole, self._choice.filter)
        self._place = selected_place(self._listing.rows, self._choice, self._place or 0)
        # The row at the cursor is the chosen one from now on, wherever it goes.
        self._choice = replace(self._choice, selected=self.selected)
        return drawn(self._listing, self._place)
