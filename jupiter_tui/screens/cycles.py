"""The cycles that there were, with their verdicts, and the commands that steer them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.actions import cycle_actions
from jupiter_tui.actions.action import Action, Ask
from jupiter_tui.drawings.cycles import CYCLES, VERDICT_KEY, cycle_of, cycles
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.screens.review import ReviewScreen
from jupiter_tui.screens.start import StartScreen
from jupiter_tui.screens.verdict import VerdictScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import FILTER, OPEN, Key
from jupiter_tui.widgets.list_panel import ListPanel


class CyclesScreen(DashboardScreen):
    """History, steering and explanations."""

    PLACE = "cycles"
    AUTO_FOCUS = "#cycles"
    KEYS: ClassVar[Sequence[Key]] = (
        OPEN,
        FILTER,
        Key("N", "N", "start", "New", "starts a cycle", changes=True),
        Key("P", "P", "request('pause')", "Pause", "pauses the chosen cycle", changes=True),
        Key("R", "R", "request('resume')", "Resume", "lets the chosen cycle go on", changes=True),
        Key("A", "A", "answer", "Answer", "answers a cycle that waits after a phase", changes=True),
        Key("X", "X", "request('stop')", "Stop", "stops the chosen cycle", changes=True),
        Key("E", "E", "request('extend')", "Extend", "gives the chosen cycle another round",
            changes=True, is_rare=True),
        Key("D", "D", "request('dismiss')", "Dismiss", "ends the alarm about the chosen cycle",
            changes=True, is_rare=True),
        Key("B", "B", "request('rollback')", "Back", "takes its newest student out of force",
            changes=True),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene], ask: Ask) -> None:
        """Take what returns the present scene, and what confirms and carries out changes."""
        super().__init__(scene)
        self._ask_and_do = ask

    @property
    def sources(self) -> Sequence[Source]:
        """Return the history."""
        return (CYCLES,)

    def body(self) -> ComposeResult:
        """Return the history."""
        yield ListPanel("cycles", cycles, title="Cycles", legend="enter explains a verdict")

    def on_list_panel_opened(self, event: ListPanel.Opened) -> None:
        """Explain a verdict, or show what a cycle's last phase has made."""
        if event.key.startswith(VERDICT_KEY):
            noun = f"verdict/{event.key.removeprefix(VERDICT_KEY)}"
            self.app.push_screen(VerdictScreen(self._present, noun))
        else:
            self.action_answer()

    def action_request(self, what: str) -> None:
        """Ask for confirmation of a command to the chosen cycle, by its verb."""
        chosen = self._chosen()
        if chosen is not None:
            self._ask_and_do(_STEERING[what](chosen))

    def action_answer(self) -> None:
        """Show what the last phase has made, and take an answer."""
        chosen = self._chosen()
        if chosen is not None:
            self.app.push_screen(ReviewScreen(self._present, self._ask_and_do, chosen))

    def action_start(self) -> None:
        """Ask what to start."""

        def started(action: Action | None) -> None:
            if action is not None:
                self._ask_and_do(action)

        self.app.push_screen(StartScreen(), started)

    def _chosen(self) -> Mapping[str, Any] | None:
        panel = self.list_panel
        if panel is None or panel.selected is None:
            return None
        return cycle_of(self._present().view.watched(CYCLES.noun).document, panel.selected)


_STEERING: Mapping[str, Callable[[Mapping[str, Any]], Action]] = {
    "pause": cycle_actions.pause,
    "resume": cycle_actions.resume,
    "stop": cycle_actions.stop,
    "rollback": cycle_actions.rollback,
    "extend": cycle_actions.extend,
    "dismiss": cycle_actions.dismiss,
}
