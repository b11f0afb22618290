"""The training: how the cycle goes."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from jupiter_tui.drawings.gang import gang
from jupiter_tui.drawings.loss import loss
from jupiter_tui.drawings.phases import phases
from jupiter_tui.drawings.readings import readings
from jupiter_tui.drawings.verdicts import events, verdicts
from jupiter_tui.panel import Panel
from jupiter_tui.screens.dashboard import DashboardScreen


class TrainingScreen(DashboardScreen):
    """How the cycle goes."""

    PLACE = "training"

    def body(self) -> ComposeResult:
        """Return two columns, and below them what there is more of with time."""
        with Horizontal(id="upper"):
            with Vertical(id="left"):
                yield Panel("readings", readings, title="Cycle")
                yield Panel("phases", phases, title="Phases")
            with Vertical(id="right"):
                yield Panel("loss", loss, title="Loss")
                yield Panel("gang", gang, title="Gang")
        yield Panel("verdicts", verdicts, title="Verdicts")
        yield Panel("events", events, title="Events")
