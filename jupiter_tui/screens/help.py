"""The list of keys of the view that is in front."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from jupiter_tui.widgets.keys import Key, help_lines


class HelpScreen(ModalScreen[None]):
    """The list of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,question_mark,q,enter", "dismiss", "Close"),
    ]

    def __init__(self, keys: Sequence[Key]) -> None:
        """Take the keys of the view, which stand above those that work everywhere."""
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Put the list in a box; it scrolls where there are more keys than lines."""
        box = VerticalScroll(Static("\n".join(help_lines(self._keys)), markup=False), id="help")
        box.border_title = "Keys"
        yield box
