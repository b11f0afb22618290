"""Asks the user at a terminal how a cycle goes on that waits after a phase.

Owns the question, the possible answers, and the command for each answer. Doesn't know when a cycle
waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.review_lines import review_lines
from jupiterd.errors import JupiterError, UsageError
from jupiterd.formats import printable
from jupiterd.protocol.commands.cycle_commands import ResumeCycle, StopCycle

QUESTION = "go on, set KEY=VALUE, redo [PHASE], auto, stop or later?"
HELP = "go on | set KEY=VALUE, then go on or redo | redo [PHASE] | auto: ask no more | stop | later"
GO_ON = "go on"


@dataclass(frozen=True)
class ReviewAnswer:
    """The user's answer."""

    command: ResumeCycle | StopCycle | None
    """The command, without the cycle's id; None: answer later."""


def ask_people(state_dir: Path, cycle: Mapping[str, Any], console: Console) -> bool:
    """Show the phase's results and ask until an answer is sent; return False if it is `later`."""
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.orders import order

    cycle_id = str(cycle["id"])
    review = ask_over_grpc(state_dir, f"review/{cycle_id}")["review"]
    for line in review_lines(review):
        console.line(line, is_quoted=True)
    settings: dict[str, str] = {}
    while True:
        said = click.prompt(QUESTION, default=GO_ON, err=True)
        try:
            answer = understood(said, settings)
            if answer is None:
                _show(settings, review, console)
                continue
            if answer.command is None:
                return False
            order(state_dir, replace(answer.command, cycle=cycle_id))
        except JupiterError as error:
            console.error(error)
            settings.clear()
        else:
            return True


def understood(said: str, settings: dict[str, str]) -> ReviewAnswer | None:
    """Return the answer in a text; None: it was `set`, and the setting was added to `settings`.

    Raises:
        UsageError: the text isn't an answer.
    """
    word, _, rest = said.strip().partition(" ")
    rest = rest.strip()
    match word.lower():
        case "set":
            key, equals, value = rest.partition("=")
            if not (key.strip() and equals):
                raise UsageError("expected set KEY=VALUE", HELP)
            settings[key.strip()] = value.strip()
            return None
        case "go" | "continue" | "c" | "y" | "yes" | "":
            return ReviewAnswer(ResumeCycle(settings=settings or None))
        case "redo" | "r":
            return ReviewAnswer(ResumeCycle(redo=rest or "last", settings=settings or None))
        case "auto":
            return ReviewAnswer(ResumeCycle(auto=True, settings=settings or None))
        case "stop" | "s":
            return ReviewAnswer(StopCycle())
        case "later" | "l":
            return ReviewAnswer(None)
        case _:
            raise UsageError(f"{printable(said)} is no answer", HELP)


def _show(settings: Mapping[str, str], review: Mapping[str, Any], console: Console) -> None:
    now = review.get("settings") or {}
    for key, value in settings.items():
        console.line(printable(f"  {key}: {value} instead of {now.get(key, 'what it is')}"))
