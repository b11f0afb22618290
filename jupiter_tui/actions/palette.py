"""The keys of the view in front as commands of the palette.

Owns which commands there are and what they are called; what they do is what the keys do. Doesn't
know any screen.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.dom import DOMNode

from jupiter_tui.widgets.keys import KEYS, OPEN, Key

if TYPE_CHECKING:
    from textual.app import App

REPLACED = ("Quit", "Keys")
"""Textual's own, which our keys do as well."""


def commands(
    app: "App[None]", view: DOMNode, keys: Sequence[Key], listed: DOMNode | None, *, reads: bool
) -> Iterator[SystemCommand]:
    """Yield a command for each key.

    Args:
        app: what the keys of all views belong to.
        view: the screen in front.
        keys: its own ones.
        listed: its list, which opens rows; None where it has none.
        reads: leave out what changes anything.
    """
    for key in (each for each in keys if not (reads and each.changes)):
        yield _command(app, view if key is not OPEN or listed is None else listed, key)
    for key in KEYS:
        yield _command(app, app, key)


def _command(app: "App[None]", owner: DOMNode, key: Key) -> SystemCommand:
    do: Callable[[], object] = partial(app.run_action, key.action, owner)
    return SystemCommand(f"{key.label} ({key.shown})", key.explanation, do)
