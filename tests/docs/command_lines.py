"""Commands of Jupiter in the documentation, read by the programs' own parsers and never run.

Owns finding them in shell and in sentences, and asking click. Doesn't know which page says what.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO

import click

from jupiter_tui.main import cli as tui
from jupiterd.ctl.main import cli as ctl
from jupiterd.daemon.app.main import cli as daemon

PROGRAMS: dict[str, click.Command] = {"jupiterctl": ctl, "jupiterd": daemon, "jupiter-tui": tui}

_ENDS = {"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"}
_WANTS_A_FILE = re.compile(r"does not exist|No such file|is not a file")

_MISSING = (click.exceptions.NoArgsIsHelpError, click.MissingParameter)
_WANTS_A_VALUE = "requires an argument"


def commands_in(shell: str) -> Iterator[list[str]]:
    """Yield each command of our programs in some shell, whatever stands before it on its line."""
    for line in shell.replace("\\\n", " ").splitlines():
        yield from _commands_of(line)


def _commands_of(line: str) -> Iterator[list[str]]:
    if not any(name in line for name in PROGRAMS):
        return
    words = shlex.split(line, comments=True)
    for start, word in enumerate(words):
        if word in PROGRAMS and (start == 0 or words[start - 1] not in PROGRAMS):
            yield list(_until_end(words[start:]))


def _until_end(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in _ENDS:
            return
        ends = word.endswith(";")
        yield word.removesuffix(";")
        if ends:
            return


def trouble(words: list[str], *, whole: bool = True) -> str:
    """Return what its program would say of a command line; empty where it is right.

    whole: nothing may be missing, as where it is to be typed and not only spoken of
    """
    try:
        with redirect_stdout(StringIO()), suppress(click.exceptions.Exit):  # as after --help
            _parse(PROGRAMS[words[0]], words[0], words[1:])
    except click.UsageError as error:
        if _WANTS_A_FILE.search(error.format_message()):
            return ""
        if not whole and (isinstance(error, _MISSING) or _WANTS_A_VALUE in error.message):
            return ""
        return f"{' '.join(words)}: {error.format_message()}"
    return ""


def _parse(command: click.Command, name: str, arguments: list[str]) -> None:
    """Let click read the arguments of a command and of those below it; nothing is called."""
    parent: click.Context | None = None
    while True:
        context = command.make_context(name, list(arguments), parent=parent)
        rest = [*context._protected_args, *context.args]
        if not isinstance(command, click.Group) or not rest:
            return
        found, below, arguments = command.resolve_command(context, rest)
        assert below is not None
        command, name, parent = below, found or "", context
