"""The screens: which panels each has, and where.

Owns the layout. Holds no arithmetic: what a panel says is a drawing's business.
"""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

from jupiter_tui.drawings.bar import banner, bar
from jupiter_tui.drawings.gang import gang
from jupiter_tui.drawings.health import health
from jupiter_tui.drawings.loss import loss
from jupiter_tui.drawings.nodes import LEGEND, nodes
from jupiter_tui.drawings.phases import phases
from jupiter_tui.drawings.readings import readings
from jupiter_tui.drawings.too_small import too_small
from jupiter_tui.drawings.verdicts import events, verdicts
from jupiter_tui.keys import help_lines
from jupiter_tui.panel import Panel
from jupiter_tui.scene import Scene


class DashboardScreen(Screen[None]):
    """A header, a body of panels, and a footer with the keys."""

    AUTO_FOCUS = "#body"

    def __init__(self, scene: Callable[[], Scene]) -> None:
        """Take the way to the present scene."""
        super().__init__()
        self._present = scene

    def compose(self) -> ComposeResult:
        """Put what every screen has around the body."""
        yield Panel("bar", bar, fades=False)
        yield Panel("banner", banner, fades=False)
        with VerticalScroll(id="body"):
            yield from self.body()
        yield Panel("too-small", too_small, fades=False)
        yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """Return the panels; each screen has its own."""
        yield from ()

    def on_mount(self) -> None:
        """Show what is known already."""
        self.show(self._present())

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        self.show(self._present())

    def show(self, scene: Scene) -> None:
        """Show another scene in every panel."""
        with self.app.batch_update():
            for panel in self.query(Panel):
                panel.show(scene)


class ClusterScreen(DashboardScreen):
    """Who is here, and what is wrong."""

    def body(self) -> ComposeResult:
        """Return the table of nodes above the health."""
        yield Panel("nodes", nodes, title="Nodes", legend=LEGEND)
        yield Panel("health", health, title="Health")


class TrainingScreen(DashboardScreen):
    """How the cycle goes."""

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


class HelpScreen(ModalScreen[None]):
    """The list of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,question_mark,q,enter", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        """Put the list in a box."""
        box = Static("\n".join(help_lines()), id="help", markup=False)
        box.border_title = "Keys"
        yield box
