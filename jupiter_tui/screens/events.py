"""What happened, and a link from each event to the machine that it is about."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.drawings.events import EVENTS, event_of, happened, whole_event
from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.drawings.primitives.listing import Choice, Listing
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.screens.node import NodeScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import FILTER, OPEN, Key
from jupiter_tui.widgets.list_panel import ListPanel
from jupiter_tui.widgets.panel import Panel
from jupiterd.cluster.values.severity import LEVELS


class EventsScreen(DashboardScreen):
    """The latest events, the newest first."""

    PLACE = "events"
    AUTO_FOCUS = "#happened"
    KEYS: ClassVar[Sequence[Key]] = (
        OPEN,
        FILTER,
        Key("l", "l", "level", "Level", "leaves out what matters less: info, warning, error"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene]) -> None:
        """Begin with everything."""
        super().__init__(scene)
        self._least = LEVELS[0]

    @property
    def sources(self) -> Sequence[Source]:
        """Return the events."""
        return (EVENTS,)

    def body(self) -> ComposeResult:
        """Return the list."""
        yield ListPanel("happened", self._drawn, title="Events")
        yield Panel("event", self._whole, title="Chosen")

    def on_list_panel_chosen(self) -> None:
        """Show the whole text of another event."""
        self.query_one("#event", Panel).show(self._present())

    def on_list_panel_opened(self, event: ListPanel.Opened) -> None:
        """Show the machine, or the cycles, that an event is about."""
        found = event_of(self._present().view.watched(EVENTS.noun).document, event.key)
        if found.get("node"):
            self.app.push_screen(NodeScreen(self._present, str(found["node"])))
        elif found.get("cycle"):
            self.app.switch_mode("cycles")

    def action_level(self) -> None:
        """Leave out more, or begin again with everything."""
        self._least = LEVELS[(LEVELS.index(self._least) + 1) % len(LEVELS)]
        self.query_one("#happened").border_title = f"Events from {self._least} on"
        self.show(self._present())

    def _whole(self, scene: Scene, width: int, _height: int) -> Lines:
        panel = self.list_panel
        return whole_event(scene, width, None if panel is None else panel.selected)

    def _drawn(self, scene: Scene, choice: Choice, width: int) -> Listing:
        return happened(scene, choice, width, self._least)
