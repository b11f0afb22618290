"""The training: the progress of the cycle, its checkpoints, completions and verdicts."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from jupiter_tui.drawings.bits_per_byte import bits
from jupiter_tui.drawings.checkpoints import checkpoints, checkpoints_noun
from jupiter_tui.drawings.completions import completions, completions_noun
from jupiter_tui.drawings.gang import gang
from jupiter_tui.drawings.loss import curve_noun, loss
from jupiter_tui.drawings.outer_rounds import outer_rounds, outer_rounds_noun
from jupiter_tui.drawings.phases import phases
from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.drawings.readings import HOW_MFU, readings
from jupiter_tui.drawings.verdicts import events, verdicts
from jupiter_tui.model.loss_view import Look
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import Key
from jupiter_tui.widgets.panel import Panel

CURVE_EVERY_S = 4.0
CHECKPOINTS_EVERY_S = 15.0
"""Seconds between two requests, each of which asks every machine what it stores."""
COMPLETIONS_EVERY_S = 15.0


class TrainingScreen(DashboardScreen):
    """How the cycle goes."""

    PLACE = "training"
    KEYS: ClassVar[Sequence[Key]] = (
        Key("x", "x", "axis", "Axis", "shows the loss over steps, tokens or time"),
        Key("l", "l", "scale", "Log", "makes the scale of the loss logarithmic, or not"),
        Key("plus,equals_sign", "+", "smooth(1)", "Smoother", "smooths the loss more"),
        Key("minus", "-", "smooth(-1)", "Rougher", "smooths the loss less"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene]) -> None:
        """Begin with the usual look at the loss."""
        super().__init__(scene)
        self._look = Look()

    @property
    def sources(self) -> Sequence[Source]:
        """Return the documents of the run that is shown; exchanges only where islands train."""
        cycle = self._present().view.cycle
        run = str(cycle.get("id") or "")
        if not run:
            return ()
        islands = (Source(outer_rounds_noun(run)),) if cycle.get("islands") else ()
        tried = cycle.get("kind", "cycle") == "cycle"
        written = (Source(completions_noun(run), COMPLETIONS_EVERY_S),) if tried else ()
        return (
            Source(curve_noun(run), CURVE_EVERY_S),
            Source(checkpoints_noun(run), CHECKPOINTS_EVERY_S),
            *islands,
            *written,
        )

    def body(self) -> ComposeResult:
        """Return two columns twice: what happens now, and below it what came of it."""
        with Horizontal(id="upper"):
            with Vertical(id="left"):
                yield Panel("readings", self._readings, title="Cycle", legend=HOW_MFU)
                yield self._chart("loss-above")
                yield Panel("phases", phases, title="Phases")
            with Vertical(id="right"):
                yield self._chart("loss")
                yield Panel("gang", gang, title="Gang")
        yield Panel("outer", outer_rounds, title="Islands")
        with Horizontal(id="lower"):
            with Vertical(id="judged"):
                yield Panel("bits", bits, title="Bits per byte")
                yield Panel("verdicts", verdicts, title="Verdicts")
            with Vertical(id="made"):
                yield Panel("checkpoints", checkpoints, title="Checkpoints")
                yield Panel("completions", completions, title="What the model writes")
        yield Panel("events", events, title="Events")

    def _chart(self, place: str) -> Panel:
        """Return the loss; where panels stand below each other it comes before the phases."""
        return Panel(place, self._loss, title="Loss", legend="x axis  l log  + - smoother")

    def action_axis(self) -> None:
        """Show the loss along the next axis."""
        self._see(self._look.with_next_axis())

    def action_scale(self) -> None:
        """Show the loss on the other scale."""
        self._see(self._look.with_other_scale())

    def action_smooth(self, by: int) -> None:
        """Show the loss smoother, or rougher."""
        self._see(self._look.smoother_by(by))

    def _see(self, look: Look) -> None:
        self._look = look
        self.show(self._present())

    def _loss(self, scene: Scene, width: int, height: int) -> Lines:
        return loss(self._look, scene, width, height)

    def _readings(self, scene: Scene, width: int, height: int) -> Lines:
        return readings(self._look, scene, width, height)
