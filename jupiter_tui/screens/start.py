"""The question what cycle to start.

Owns the fields. What is wrong with them, jupiterctl says.
"""

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Checkbox, Input, Label

from jupiter_tui.actions import cycle_actions
from jupiter_tui.actions.action import Action
from jupiterd.locations import config_folder

FIRST_DOMAIN, FIRST_SIZE, FIRST_ROUNDS = "python", "1m", "2"
"""What every machine can do, even without a network: Python's own library is on each."""


class Tick(Checkbox):
    """A box that is empty until it is chosen, on terminals without colours too."""

    BUTTON_LEFT, BUTTON_INNER, BUTTON_RIGHT = "[", " ", "]"

    def watch_value(self) -> None:
        """Show the mark, or none."""
        self.BUTTON_INNER = "X" if self.value else " "  # pyright: ignore[reportConstantRedefinition]
        super().watch_value()


class StartScreen(ModalScreen[Action | None]):
    """Asks for a domain, a size and rounds."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        """Put the fields in a box."""
        box = Vertical(*self._fields(), id="start")
        box.border_title = "Start a cycle"
        yield box

    def _fields(self) -> Iterator[Label | Input | Checkbox | Button]:
        domains, sizes = _names("domains"), _names("models")
        yield Label(f"domain, or a file of your own: {', '.join(domains)}", markup=False)
        yield Input(value=FIRST_DOMAIN, id="domain", compact=True)
        yield Label(f"size: {', '.join(sizes)}", markup=False)
        yield Input(value=FIRST_SIZE, id="size", compact=True)
        yield Label("rounds")
        yield Input(value=FIRST_ROUNDS, id="rounds", type="integer", compact=True)
        yield Label("generator: a folder, or URL#MODEL; nothing: our own student")
        yield Input(id="generator", compact=True)
        yield Tick("wait for an answer after each phase", id="interactive", compact=True)
        yield Button("Start", id="go", compact=True)

    def on_input_submitted(self) -> None:
        """Take Enter in a field for the button."""
        self._done()

    def on_button_pressed(self) -> None:
        """Hand back what is to be started."""
        self._done()

    def _done(self) -> None:
        domain, size, generator = (
            self.query_one(f"#{name}", Input).value.strip()
            for name in ("domain", "size", "generator")
        )
        rounds = self.query_one("#rounds", Input).value.strip()
        is_interactive = self.query_one("#interactive", Checkbox).value
        if not (domain and size and rounds.isdecimal()):
            self.notify("domain, size and rounds are needed", severity="warning")
            return
        self.dismiss(
            cycle_actions.start(domain, size, int(rounds), generator, is_interactive=is_interactive)
        )


def _names(folder: str) -> list[str]:
    found = (config_folder() / folder).glob("[!_]*.yaml")
    return sorted(path.stem for path in found)
