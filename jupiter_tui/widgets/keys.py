"""The keys of the dashboard.

Pure. Owns their list: bindings, footer and help are all made from it. Doesn't know what they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """One thing that a key press does."""

    names: str
    """As Textual calls the keys, separated by commas."""
    shown: str
    """As people call them."""
    action: str
    label: str
    """One word, for the footer."""
    explanation: str
    changes: bool = False
    """Changes something in the cluster: a dashboard that only reads doesn't offer it."""
    is_rare: bool = False
    """In the help and among the commands, not in the footer, which has little room."""


SCREENS = (
    Key("1,c", "1 or c", "show_screen('cluster')", "Cluster", "the nodes, and what is wrong"),
    Key("2,t", "2 or t", "show_screen('training')", "Training", "phases, loss, gang and verdicts"),
    Key("3,d", "3 or d", "show_screen('data')", "Data", "what was collected, kept and dropped"),
    Key("4,y", "4 or y", "show_screen('cycles')", "Cycles", "their verdicts, and steering them"),
    Key("5,e", "5 or e", "show_screen('events')", "Events", "what happened, and to which machine"),
)
"""Those that bring a screen to the front; a line of their own names them."""

KEYS = (
    *SCREENS,
    Key("p", "p", "pause", "Pause", "holds the picture still; once more lets it go on"),
    Key("question_mark", "?", "help", "Help", "this list"),
    Key("q", "q", "quit", "Quit", "leaves; the cluster goes on without it"),
)
"""Those that work on every screen."""

FILTER = Key("slash", "/", "filter", "Filter", "shows only the rows that hold some words")
SORT = Key("s", "s", "sort", "Sort", "puts the rows in another order")
OPEN = Key("enter", "enter", "open", "Open", "shows more of the chosen row")
"""Of screens with a list; `enter` is bound by the list itself."""
BACK = Key("escape", "esc", "app.pop_screen", "Back", "goes back to the screen before")

MORE = (
    ("arrow keys", "choose a row, or scroll"),
    ("tab", "goes on to the next part of the screen"),
    ("ctrl+p", "lists the commands, themes among them"),
    ("esc", "closes this list"),
)
"""Keys that Textual brings along."""


def help_lines(keys: Sequence[Key] = ()) -> list[str]:
    """Return one line for each key: those of the view, those of all views, and Textual's."""
    explained = [(key.shown, key.explanation) for key in (*keys, *KEYS)] + list(MORE)
    return [f"{shown:<12}{explanation}" for shown, explanation in explained]
