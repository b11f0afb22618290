"""The dashboard as a Textual application.

Owns the view model, the Textual workers that update it, and how often the screens are redrawn.
Doesn't know what the screens show.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.screen import Screen
from textual.worker import Worker

from jupiter_tui.actions.action import Action
from jupiter_tui.actions.execution import carried_out
from jupiter_tui.actions.palette import REPLACED, commands
from jupiter_tui.drawings.too_small import MIN_COLUMNS, MIN_LINES
from jupiter_tui.model.clock import Moment, moment
from jupiter_tui.model.feed import STATUS, feed
from jupiter_tui.model.recorder import Recorder, play
from jupiter_tui.model.scene import Options, Scene
from jupiter_tui.model.source import Source
from jupiter_tui.model.view import ViewModel, fold, fold_other, forget_other, with_link_of
from jupiter_tui.screens.cluster import ClusterScreen
from jupiter_tui.screens.confirm import ConfirmScreen
from jupiter_tui.screens.cycles import CyclesScreen
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.screens.data import DataScreen
from jupiter_tui.screens.events import EventsScreen
from jupiter_tui.screens.help import HelpScreen
from jupiter_tui.screens.training import TrainingScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import KEYS
from jupiterd.client.watch import STALE_AFTER_S, Link, LinkChanged, WatchMessage
from jupiterd.errors import DiskFullError, UsageError
from jupiterd.locations import directed

PROMPT = "type a part of what you want"

WIDE_COLUMNS = 100
"""From here on panels stand side by side."""

WIDTH_CLASSES = [(0, "-slim"), (MIN_COLUMNS, "-narrow"), (WIDE_COLUMNS, "-wide")]
TALL_LINES, HIGH_LINES = 30, 50
"""From here on charts are larger."""

HEIGHT_CLASSES = [(0, "-flat"), (MIN_LINES, "-low"), (TALL_LINES, "-tall"), (HIGH_LINES, "-high")]
"""(lines, class for the style sheet): a terminal has the class of the most lines it reaches."""


class JupiterTui(App[None]):
    """The screens, the stream of status documents, and the documents that each screen watches."""

    TITLE = "Jupiter"
    CSS_PATH = Path(__file__).with_name("dashboard.tcss")
    HORIZONTAL_BREAKPOINTS = WIDTH_CLASSES
    VERTICAL_BREAKPOINTS = HEIGHT_CLASSES
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KEYS),
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
        self._recorder = None if options.record is None else Recorder(options.record)
        self._listening: dict[Source, Worker[None]] = {}
        self._paused_view: ViewModel | None = None
        """What was shown when the picture was paused."""

    def on_mount(self) -> None:
        """Open the screens and begin to listen."""
        self.set_class(self.options.is_ascii, "-ascii")
        self.add_mode("cluster", lambda: ClusterScreen(self.scene, self.ask_and_do))
        self.add_mode("training", lambda: TrainingScreen(self.scene))
        self.add_mode("data", lambda: DataScreen(self.scene))
        self.add_mode("cycles", lambda: CyclesScreen(self.scene, self.ask_and_do))
        self.add_mode("events", lambda: EventsScreen(self.scene))
        self.switch_mode("cluster")
        self.set_interval(1 / self.options.refresh_hz, self.flush)
        self._listen()

    def scene(self) -> Scene:
        """Return what is to be shown now."""
        view = (
            self._view if self._paused_view is None else with_link_of(self._paused_view, self._view)
        )
        return Scene(view, self._clock(), self.options, is_paused=self._paused_view is not None)

    def flush(self) -> None:
        """Bring the screens in front up to date."""
        scene = self.scene()
        in_front = [screen for screen in self.screen_stack if isinstance(screen, DashboardScreen)]
        for screen in in_front:
            if screen.is_mounted:
                screen.show(scene)
        self._listen_to({source for screen in in_front for source in screen.sources})

    def take_status(self, message: WatchMessage) -> None:
        """Fold a message about the status into the view; the next flush shows it."""
        self.take_document(STATUS.noun, message)

    def take_document(self, noun: str, message: WatchMessage) -> None:
        """Fold a message about a document into the view, and record it where --record is given."""
        now = self._clock()
        if noun == STATUS.noun:
            self._view = fold(self._view, message, now)
        else:
            self._view = fold_other(self._view, noun, message, now)
        if noun == STATUS.noun and isinstance(message, LinkChanged):
            self.call_later(self.flush)  # rare, and what people wait for
        if self._recorder is not None:
            try:
                self._recorder.take(noun, message, now.now_s)
            except DiskFullError as error:
                self.notify(error.message, severity="error", markup=False)

    @work(exclusive=True, group="feed", exit_on_error=False)
    async def _listen(self) -> None:
        if self.options.replay is None:
            await feed(self.options.state_dir, self.take_status, stale_after_s=self._stale_after_s)
            return
        try:
            await play(self.options.replay, self.take_document, self.options.speed)
        except UsageError as error:
            self.take_status(LinkChanged(Link.STALE, error.message))

    def _listen_to(self, wanted: set[Source]) -> None:
        """Start and cancel feeds, so that only documents of screens in front are requested."""
        if self.options.replay is not None:
            return
        for source in wanted - self._listening.keys():
            self._listening[source] = self._listen_to_one(source)
        for source in self._listening.keys() - wanted:
            self._listening.pop(source).cancel()
            self._view = forget_other(self._view, source.noun)

    @work(group="others", exit_on_error=False)
    async def _listen_to_one(self, source: Source) -> None:
        deliver = partial(self.take_document, source.noun)
        await feed(self.options.state_dir, deliver, source, stale_after_s=self._stale_after_s)

    @work(group="actions", exit_on_error=False)
    async def ask_and_do(self, action: Action) -> None:
        """Ask for confirmation, carry out the change, and notify its result."""
        asking = ConfirmScreen(action, self.options.named_dir)
        if self.options.is_readonly or not await self.push_screen_wait(asking):
            return
        words, is_done = await carried_out(self.options.state_dir, action)
        words = directed(words, self.options.named_dir)
        self.notify(words, markup=False, severity="information" if is_done else "error")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the palette's commands: those of the view's keys, and Textual's own."""
        if isinstance(screen, DashboardScreen):
            reads = self.options.is_readonly
            yield from commands(self, screen, screen.KEYS, screen.list_panel, reads=reads)
        own = super().get_system_commands(screen)
        yield from (command for command in own if command.title not in REPLACED)

    def action_command_palette(self) -> None:
        """Open the palette."""
        if self.use_command_palette and not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder=PROMPT, id="--command-palette"))

    def action_show_screen(self, name: str) -> None:
        """Bring a screen to the front."""
        self.switch_mode(name)

    def action_pause(self) -> None:
        """Pause the picture, or resume it; messages are received in either case."""
        self._paused_view = self._view if self._paused_view is None else None
        self.flush()

    def action_help(self) -> None:
        """Show the keys of the view in front."""
        in_front = self.screen
        self.push_screen(HelpScreen(in_front.KEYS if isinstance(in_front, DashboardScreen) else ()))
