"""The keys of the dashboard.

Owns their list: bindings, footer and help are all made from it. Doesn't know what they do.
"""

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


KEYS = (
    Key("1,c", "1 or c", "show_screen('cluster')", "Cluster", "the nodes, and what is wrong"),
    Key("2,t", "2 or t", "show_screen('training')", "Training", "phases, loss, gang and verdicts"),
    Key("p", "p", "pause", "Pause", "holds the picture still; once more lets it go on"),
    Key("question_mark", "?", "help", "Help", "this list"),
    Key("q", "q", "quit", "Quit", "leaves; the cluster goes on without it"),
)

MORE = (
    ("arrow keys", "scroll"),
    ("esc", "closes this list"),
)
"""Keys that Textual brings along."""


def help_lines() -> list[str]:
    """Return one line for each key."""
    explained = [(key.shown, key.explanation) for key in KEYS] + list(MORE)
    return [f"{shown:<12}{explanation}" for shown, explanation in explained]
