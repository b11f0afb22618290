"""One machine, with the last ten minutes and its log."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.drawings.pages import machine
from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import BACK, Key
from jupiter_tui.widgets.panel import Panel

AGAIN_S = 2.0
"""Seconds: the interval at which a node's histories get a new point."""


class NodeScreen(DashboardScreen):
    """Everything about one node."""

    PLACE = "cluster"
    KEYS: ClassVar[Sequence[Key]] = (BACK,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene], node: str) -> None:
        """Take the node's id."""
        super().__init__(scene)
        self._source = Source(f"node/{node}", AGAIN_S)

    @property
    def sources(self) -> Sequence[Source]:
        """Return the node."""
        return (self._source,)

    def body(self) -> ComposeResult:
        """Return the page."""
        yield Panel("machine", self._drawn, title="Node")

    def _drawn(self, scene: Scene, width: int, _height: int) -> Lines:
        return machine(scene, width, self._source.noun)
