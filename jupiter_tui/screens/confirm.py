"""The question before anything is changed; it names what would be changed.

Owns the keys of the answer. Doesn't know what is asked.
"""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from jupiter_tui.actions.action import Action
from jupiterd.locations import directed

ANSWERS = "[y] yes    [n] no"


class ConfirmScreen(ModalScreen[bool]):
    """Asks once; nothing but y means yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "dismiss(True)", "Yes"),
        ("n,escape,q", "dismiss(False)", "No"),
    ]

    def __init__(self, action: Action, named_dir: Path | None = None) -> None:
        """Take what would be done, and the daemon's folder where a command must name it."""
        super().__init__()
        self._action, self._named_dir = action, named_dir

    def compose(self) -> ComposeResult:
        """Put the question in a box."""
        action = self._action
        typed = directed(action.typed, self._named_dir)
        words = [action.question, *action.consequences, "", f"$ {typed}", "", ANSWERS]
        box = Static("\n".join(words), id="confirm", markup=False)
        box.border_title = action.title
        yield box
