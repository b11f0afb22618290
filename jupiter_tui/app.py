"""The dashboard as a Textual application.

Owns the view model, its one worker, and how often the screens are brought up to date.
Doesn't know what the screens show.
"""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import App
from textual.binding import Binding, BindingType

from jupiter_tui.clock import Moment, moment
from jupiter_tui.drawings.too_small import MIN_COLUMNS, MIN_LINES
from jupiter_tui.feed import feed
from jupiter_tui.keys import KEYS
from jupiter_tui.scene import Options, Scene
from jupiter_tui.screens import ClusterScreen, DashboardScreen, HelpScreen, TrainingScreen
from jupiter_tui.view import ViewModel, fold, with_link_of
from jupiterd.client.watch import STALE_AFTER_S, WatchMessage

WIDE_COLUMNS = 100
"""From here on panels stand side by side."""

WIDTH_CLASSES = [(0, "-slim"), (MIN_COLUMNS, "-narrow"), (WIDE_COLUMNS, "-wide")]
HEIGHT_CLASSES = [(0, "-flat"), (MIN_LINES, "-tall")]
"""What the style sheet knows of the terminal: the class of the highest number that it reaches."""


class JupiterTui(App[None]):
    """Two screens over one watch stream."""

    TITLE = "Jupiter"
    CSS_PATH = Path(__file__).with_name("dashboard.tcss")
    HORIZONTAL_BREAKPOINTS = WIDTH_CLASSES
    VERTICAL_BREAKPOINTS = HEIGHT_CLASSES
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key.names, key.action, key.label) for key in KEYS),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        options: Options,
        *,
        clock: Callable[[], Moment] = moment,
        stale_after_s: float = STALE_AFTER_S,
    ) -> None:
        """Take what the command line says.

        Args:
            options: which daemon, and how to show it.
            clock: returns the present moment.
            stale_after_s: after how much silence of the daemon its data counts as old.
        """
        super().__init__()
        self.options = options
        self._clock = clock
        self._stale_after_s = stale_after_s
        self._view = ViewModel()
        self._held: ViewModel | None = None
        """What was shown when the picture was paused."""
        self.use_command_palette = not options.is_ascii

    def on_mount(self) -> None:
        """Open the screens and begin to listen."""
        self.set_class(self.options.is_ascii, "-ascii")
        self.add_mode("cluster", lambda: ClusterScreen(self.scene))
        self.add_mode("training", lambda: TrainingScreen(self.scene))
        self.switch_mode("cluster")
        self.set_interval(1 / self.options.refresh_hz, self.flush)
        self._listen()

    def scene(self) -> Scene:
        """Return what is to be shown now."""
        view = self._view if self._held is None else with_link_of(self._held, self._view)
        return Scene(view, self._clock(), self.options, is_paused=self._held is not None)

    def flush(self) -> None:
        """Bring the screens in front up to date."""
        scene = self.scene()
        for screen in self.screen_stack:
            if isinstance(screen, DashboardScreen) and screen.is_mounted:
                screen.show(scene)

    def tell(self, message: WatchMessage) -> None:
        """Take up a message; it is shown with the next flush."""
        self._view = fold(self._view, message, self._clock())

    @work(exclusive=True, group="feed", exit_on_error=False)
    async def _listen(self) -> None:
        await feed(self.options.state_dir, self.tell, stale_after_s=self._stale_after_s)

    def action_show_screen(self, name: str) -> None:
        """Bring a screen to the front."""
        self.switch_mode(name)

    def action_pause(self) -> None:
        """Hold the picture still, or let it go on; listening goes on all the time."""
        self._held = self._view if self._held is None else None
        self.flush()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())
