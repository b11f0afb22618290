"""Where one sample comes from."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.drawings.pages import provenance
from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import BACK, Key
from jupiter_tui.widgets.panel import Panel

AGAIN_S = 60.0


class SampleScreen(DashboardScreen):
    """A sample's whole chain of records."""

    PLACE = "data"
    KEYS: ClassVar[Sequence[Key]] = (BACK,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene], sample: str) -> None:
        """Take the sample's id."""
        super().__init__(scene)
        self._source = Source(f"why/{sample}", AGAIN_S)

    @property
    def sources(self) -> Sequence[Source]:
        """Return the chain."""
        return (self._source,)

    def body(self) -> ComposeResult:
        """Return the chain."""
        yield Panel("provenance", self._drawn, title="Where it comes from")

    def _drawn(self, scene: Scene, _width: int, _height: int) -> Lines:
        return provenance(scene, self._source.noun)
