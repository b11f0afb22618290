"""What the last phase of a cycle has made, and what people answer where the cycle waits for it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input

from jupiter_tui.actions import cycle_actions
from jupiter_tui.actions.action import Ask
from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.drawings.review import review
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import BACK, Key
from jupiter_tui.widgets.panel import Panel

AGAIN_S = 20.0


class ReviewScreen(DashboardScreen):
    """Counts, reasons, samples and settings; and the answers."""

    PLACE = "cycles"
    KEYS: ClassVar[Sequence[Key]] = (
        Key("G", "G", "answer", "Go on", "lets the cycle go on", changes=True),
        Key("D", "D", "answer('--redo')", "Redo", "does the last phase again", changes=True),
        Key("U", "U", "answer('--auto')", "Auto", "goes on, and asks after no phase", changes=True),
        Key("E", "E", "change", "Set", "changes a setting, written as KEY=VALUE", changes=True),
        Key("X", "X", "stop", "Stop", "stops the cycle", changes=True),
        BACK,
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene], ask: Ask, cycle: Mapping[str, Any]) -> None:
        """Take the cycle that waits for an answer, and what confirms and carries it out."""
        super().__init__(scene)
        self._ask_and_do = ask
        self._cycle = cycle
        self._source = Source(f"review/{cycle.get('id')}", AGAIN_S)
        self._settings: tuple[str, ...] = ()

    @property
    def sources(self) -> Sequence[Source]:
        """Return what the phase has made."""
        return (self._source,)

    def body(self) -> ComposeResult:
        """Return what the phase has made, and the line in which settings are written."""
        yield Panel("review", self._drawn, title="What the last phase has made")
        yield Input(id="setting", placeholder="KEY=VALUE, then Enter", compact=True)

    def on_mount(self) -> None:
        """Begin without the line for settings."""
        self.query_one("#setting").display = False

    def action_answer(self, *more: str) -> None:
        """Ask whether the cycle is to go on so, with the settings that were changed."""
        changed = [word for setting in self._settings for word in ("--set", setting)]
        self._ask_and_do(cycle_actions.resume(self._cycle, *more, *changed))

    def action_stop(self) -> None:
        """Ask whether the cycle is to stop."""
        self._ask_and_do(cycle_actions.stop(self._cycle))

    def action_change(self) -> None:
        """Take a setting; it goes with the answer."""
        line = self.query_one("#setting", Input)
        line.display = True
        line.focus()

    def on_input_submitted(self) -> None:
        """Keep a setting for the answer."""
        line = self.query_one("#setting", Input)
        if line.display and line.value:
            self._settings = (*self._settings, line.value)
            settings_line = Content("with " + ", ".join(self._settings))
            self.query_one("#review").border_subtitle = settings_line
        line.value = ""
        line.display = False
        self.query_one("#body").focus()

    def _drawn(self, scene: Scene, width: int, _height: int) -> Lines:
        return review(scene, width, self._source.noun)
