"""What every screen has: a header, a body of panels, and a footer with its keys.

Owns the frame, and the input line of the filter. Doesn't know what a panel shows.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Footer, Input

from jupiter_tui.drawings.header import banner, bar
from jupiter_tui.drawings.too_small import too_small
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.widgets.keys import Key
from jupiter_tui.widgets.list_panel import ListPanel
from jupiter_tui.widgets.panel import Panel
from jupiter_tui.widgets.tab_line import TabLine


class DashboardScreen(Screen[None]):
    """A header, a body of panels, and a footer with the keys."""

    AUTO_FOCUS = "#body"
    KEYS: ClassVar[Sequence[Key]] = ()
    """Keys of this screen alone, for footer and help; its BINDINGS are made from them."""
    PLACE: ClassVar[str] = ""
    """Which of the screens that have a key this is, or belongs to."""

    def __init__(self, scene: Callable[[], Scene]) -> None:
        """Take what returns the present scene."""
        super().__init__()
        self._present = scene

    @property
    def sources(self) -> Sequence[Source]:
        """Return the documents that this screen watches in addition to the status."""
        return ()

    def compose(self) -> ComposeResult:
        """Put what every screen has around the body."""
        yield Panel("bar", bar, fades=False)
        yield TabLine(self.PLACE)
        yield Panel("banner", banner, fades=False)
        with VerticalScroll(id="body"):
            yield from self.body()
        yield Panel("too-small", too_small, fades=False)
        yield Input(id="filter", placeholder="filter; Enter keeps it, Esc drops it", compact=True)
        yield Footer(show_command_palette=False, compact=True)

    def body(self) -> ComposeResult:
        """Return the panels; each screen has its own."""
        yield from ()

    def on_mount(self) -> None:
        """Show what is known already."""
        self.query_one("#filter").display = False
        self.show(self._present())

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        self.show(self._present())

    def show(self, scene: Scene) -> None:
        """Show another scene in every panel."""
        with self.app.batch_update():
            for panel in self.query(Panel):
                panel.show(scene)

    @property
    def list_panel(self) -> ListPanel | None:
        """Return the list of this screen that a filter is for; None where there is none."""
        try:
            return self.query(ListPanel).first()
        except NoMatches:
            return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what a readonly dashboard doesn't offer."""
        del parameters
        changes = {key.action.partition("(")[0] for key in self.KEYS if key.changes}
        return not (action in changes and self._present().options.is_readonly)

    def action_filter(self) -> None:
        """Open the line in which a filter is written."""
        if self.list_panel is not None:
            line = self.query_one("#filter", Input)
            line.display = True
            line.focus()

    def action_sort(self) -> None:
        """Put the list in the next order."""
        if self.list_panel is not None:
            self.list_panel.sort_by_next()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show only what matches."""
        if self.list_panel is not None:
            self.list_panel.filter_by(event.value)

    def on_input_submitted(self) -> None:
        """Keep the filter, and go back to the list."""
        self._close_filter()

    def key_escape(self) -> None:
        """Drop the filter while it is written."""
        line = self.query_one("#filter", Input)
        if line.display:
            line.value = ""
            self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter").display = False
        if self.list_panel is not None:
            self.list_panel.focus()
