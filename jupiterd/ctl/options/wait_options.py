"""The options --wait and --timeout: the command returns when its work is done, not only recorded.

Owns these two options, and --accept-worse. Doesn't know what a command waits for.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from jupiterd.ctl.options.durations import DURATION
from jupiterd.errors import UsageError

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


ACCEPT_WORSE = click.option(
    "--accept-worse",
    "accept_worse",
    is_flag=True,
    help="End with status 0, too, where weights that were given got worse.",
)
"""For commands that wait for training: accept that given weights got worse."""

UNTIL_ITS_END = "Show how it goes, until it ends."
UNTIL_AT_REST = "Return once no machine works on it any more."


def wait_options(what: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that adds both options; `what`: the help of --wait."""

    def give(command: CommandFunction) -> CommandFunction:
        limit = click.option(
            "--timeout", type=DURATION, metavar="S", help="With --wait: give up after this."
        )
        return click.option("--wait", is_flag=True, help=what)(limit(command))

    return give


def check_wait(*, wait: bool, timeout: float | None) -> None:
    """Raise UsageError if --timeout is given without --wait."""
    if timeout is not None and not wait:
        path = click.get_current_context().command_path
        raise UsageError("--timeout needs --wait", f"{path} --help")
