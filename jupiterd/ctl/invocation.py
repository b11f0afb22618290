"""The global options of jupiterctl: daemon, output format, confirmation and debugging.

Owns these options, which may be before or after the command's name. Doesn't know any command.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from jupiterd.locations import directed, state_dir

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])

OUTPUTS = ("table", "json", "jsonl")


@dataclass
class Invocation:
    """The global options of one run, set while click parses the command line."""

    named_state_dir: str | None = None
    output: str = "table"
    is_debugging: bool = False
    is_confirmed: bool = False
    is_dry_run: bool = False

    @property
    def state_dir(self) -> Path:
        """Return the state folder of the daemon that the command calls."""
        return state_dir(self.named_state_dir)

    def typeable(self, text: str) -> str:
        """Return the text; if --state-dir was given, add it to each command in the text."""
        return directed(text, self.state_dir if self.named_state_dir else None)


def global_options() -> list[click.Option]:
    """Return the options that the group and every command take; the last one given wins."""
    return [
        click.Option(
            ["--state-dir"],
            metavar="DIR",
            expose_value=False,
            callback=_stored_option("named_state_dir"),
            help="State folder of the daemon to talk to (or JUPITER_STATE_DIR).",
        ),
        click.Option(
            ["-o", "--output"],
            type=click.Choice(OUTPUTS),
            expose_value=False,
            callback=_stored_option("output"),
            help="Form of the output; table by default.",
        ),
        click.Option(
            ["--yes"],
            is_flag=True,
            expose_value=False,
            callback=_stored_option("is_confirmed"),
            help="Don't ask before changing something.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            callback=_stored_option("is_debugging"),
            help="Show the traceback when something fails.",
        ),
    ]


def dry_run(command: CommandFunction) -> CommandFunction:
    """Add --dry-run, which only shows what would be ordered, to a command."""
    return click.option(
        "--dry-run",
        is_flag=True,
        expose_value=False,
        callback=_stored_option("is_dry_run"),
        help="Only say what would be ordered; change nothing.",
    )(command)


def _stored_option(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, _: click.Parameter, value: object) -> None:
        if value not in (None, False):  # an option that isn't given keeps an earlier value
            setattr(context.ensure_object(Invocation), name, value)
        else:
            context.ensure_object(Invocation)

    return keep
