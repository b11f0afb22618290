"""Why a verdict was what it was, and what the compared models wrote to the same prompts."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.drawings.pages import answered, explained
from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import BACK, Key
from jupiter_tui.widgets.panel import Panel

AGAIN_S = 60.0
"""Seconds. A verdict never changes, but the node that stores it may be out of reach at first."""


class VerdictScreen(DashboardScreen):
    """The gate's sentences about one verdict, and answers that stand beside it."""

    PLACE = "cycles"
    KEYS: ClassVar[Sequence[Key]] = (BACK,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene], noun: str) -> None:
        """Take the document that the verdict is in."""
        super().__init__(scene)
        self._source = Source(noun, AGAIN_S)

    @property
    def sources(self) -> Sequence[Source]:
        """Return the verdict."""
        return (self._source,)

    def body(self) -> ComposeResult:
        """Return the sentences, and below them the answers."""
        yield Panel("explained", self._drawn, title="Verdict")
        yield Panel("answers", self._answers, title="Side by side")

    def _answers(self, scene: Scene, width: int, _height: int) -> Lines:
        return answered(scene, width, self._source.noun)

    def _drawn(self, scene: Scene, width: int, _height: int) -> Lines:
        return explained(scene, width, self._source.noun)
