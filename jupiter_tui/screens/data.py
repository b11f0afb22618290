"""The text: what was collected, kept and dropped, and where each sample comes from."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.drawings.flow import OF_TEXT, flow
from jupiter_tui.drawings.primitives.lines import Tone, line
from jupiter_tui.drawings.primitives.listing import Choice, Listing
from jupiter_tui.drawings.samples import SORTS, samples
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.screens.sample import SampleScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import FILTER, OPEN, SORT, Key
from jupiter_tui.widgets.list_panel import ListPanel
from jupiter_tui.widgets.panel import Panel

AGAIN_S = 15.0
NO_SAMPLES = "samples are listed as soon as a phase of a cycle has made some"

Place = tuple[str, int, str]
"""A cycle, a round and a phase."""


class DataScreen(DashboardScreen):
    """Counts of each phase, and a browser of samples."""

    PLACE = "data"
    AUTO_FOCUS = "#samples"
    KEYS: ClassVar[Sequence[Key]] = (
        OPEN,
        FILTER,
        SORT,
        Key("b,left", "b or left", "phase(-1)", "Earlier", "shows samples of the phase before"),
        Key("n,right", "n or right", "phase(1)", "Later", "shows samples of the phase after"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene]) -> None:
        """Begin at the last phase that has made something, and go on with it."""
        super().__init__(scene)
        self._chosen: Place | None = None

    @property
    def sources(self) -> Sequence[Source]:
        """Return the samples of the phase that is shown."""
        place = self._place()
        return (Source(_noun(place), AGAIN_S),) if place else ()

    def body(self) -> ComposeResult:
        """Return the counts above the samples."""
        yield Panel("flow", flow, title="Data")
        yield ListPanel("samples", self._samples, title="Samples", sorts=SORTS)

    def on_list_panel_opened(self, event: ListPanel.Opened) -> None:
        """Show where a sample comes from."""
        self.app.push_screen(SampleScreen(self._present, event.key))

    def action_phase(self, by: int) -> None:
        """Show samples of another phase."""
        places, now = self._places(), self._place()
        if now is not None:
            at = min(max(places.index(now) + by, 0), len(places) - 1)
            self._chosen = places[at]
            self.show(self._present())

    def _samples(self, scene: Scene, choice: Choice, width: int) -> Listing:
        place = self._place()
        if place is None:
            return Listing((), (), (line(NO_SAMPLES, Tone.FAINT),))
        self.query_one("#samples").border_title = f"Samples of round {place[1]}, {place[2]}"
        return samples(scene, choice, width, _noun(place))

    def _place(self) -> Place | None:
        places = self._places()
        return self._chosen if self._chosen in places else places[-1] if places else None

    def _places(self) -> list[Place]:
        """Return the phases that have made samples, in their order."""
        cycle: dict[str, Any] = self._present().view.document.get("cycle") or {}
        return [
            (str(cycle.get("id")), int(row["round"]), str(row["phase"]))
            for row in cycle.get("phases") or ()
            if row.get("phase") in OF_TEXT[:-1] and row.get("state") == "done"
        ]


def _noun(place: Place) -> str:
    cycle, number, phase = place
    return f"review/{cycle}/{number}/{phase}"
