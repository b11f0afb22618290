"""The commands of a conversation: lines that begin with a slash.

Pure. Owns their names, what each is good for, and which line is a command. Doesn't carry any out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jupiterd.errors import UsageError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "help": ("", "this list"),
    "model": (
        "[MODEL]",
        "say which model answers and which others there are, or talk to another one",
    ),
    "beside": ("[MODEL]", "have a second model answer beside the first; without a name: no longer"),
    "system": ("[TEXT]", "say what the model is told before the conversation, or change it"),
    "temperature": ("[NUMBER]", "0 always takes the likeliest word; without a number: the usual"),
    "set": ("NAME VALUE", "set temperature, top_p, max_tokens or seed; verbose or quiet"),
    "show": ("", "the model, its context and all values that are set"),
    "undo": ("", "forget the last question and its answer"),
    "again": ("", "another answer to the last question"),
    "more": ("", "let a model that completes text go on where it ended"),
    "clear": ("", "forget the whole conversation"),
    "save": ("FILE", "write the conversation: Markdown, or JSON where FILE ends with .json"),
    "quit": ("", "leave; so does Ctrl-D"),
}
"""Name -> what follows it, and what it does."""

ALIASES: Mapping[str, str] = {
    "?": "help", "bye": "quit", "exit": "quit", "q": "quit", "load": "model", "regenerate": "again",
    "retry": "again", "info": "show", "reset": "clear", "new": "clear",
}  # fmt: skip
"""What other programs call a command -> its name here."""

_COMMAND = re.compile(r"/(?P<name>[a-z]+|\?)(?:[ \t]+(?P<argument>.*))?\Z", re.IGNORECASE)

KEYS = (
    ('"""', "begins and ends a text of several lines; so does \\ at the end of a line"),
    ("//", "sends a text that begins with a slash"),
    ("Ctrl-C", "stops an answer"),
)


@dataclass(frozen=True)
class SlashCommand:
    """A command that was typed."""

    name: str
    argument: str = ""


def slash_command(line: str) -> SlashCommand | None:
    """Return the command in a line; None: it is text for the model.

    A path such as /usr/bin is text, and so is what has several lines.

    Raises:
        UsageError: it looks like a command, and there is none of that name, or it lacks something.
    """
    found = _COMMAND.match(line.strip())
    if found is None:
        return None
    typed = found["name"].lower()
    name = ALIASES.get(typed, typed)
    argument = (found["argument"] or "").strip()
    if name not in COMMANDS:
        raise UsageError(f"there is no command /{typed}", _meant(typed))
    wanted = COMMANDS[name][0]
    if wanted and not argument and not wanted.startswith("["):
        raise UsageError(f"/{name} needs {wanted}", f"such as {_EXAMPLES[name]}")
    return SlashCommand(name, argument)


def as_text(line: str) -> str:
    """Return what the model gets of a line that is no command: of two slashes one."""
    return line[1:] if line.startswith("//") else line


def help_lines() -> list[str]:
    """Return a line for each command and key."""
    rows = [(f"/{name} {argument}".rstrip(), said) for name, (argument, said) in COMMANDS.items()]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {said}" for name, said in [*rows, *KEYS]]


def completions(begun: str) -> list[str]:
    """Return the commands that a word may become."""
    return [f"/{name}" for name in COMMANDS if f"/{name}".startswith(begun)]


_EXAMPLES = {"set": "/set top_p 0.9", "save": "/save talk.md"}


def _meant(typed: str) -> str:
    from difflib import get_close_matches  # for mistakes alone

    near = get_close_matches(typed, [*COMMANDS, *ALIASES], n=1)
    others = "/help lists all; // sends a text that begins with a slash"
    return f"did you mean /{ALIASES.get(near[0], near[0])}? {others}" if near else others
