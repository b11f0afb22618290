"""--wait and --timeout: a command that returns once its doing is done, not only recorded.

Owns the two options, and the one that says what a bad end means. Doesn't know what a command waits
for.
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
"""Of what waits for training: of weights that were given, and that training made worse."""

UNTIL_ITS_END = "Show how it goes, until it ends."
UNTIL_AT_REST = "Return once no machine works on it any more."


def wait_options(what: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return what gives a command the two options; `what` says what waiting does, with its end."""

    def give(command: CommandFunction) -> CommandFunction:
        limit = click.option(
            "--timeout", type=DURATION, metavar="S", help="With --wait: give up after this."
        )
        return click.option("--wait", is_flag=True, help=what)(limit(command))

    return give


def check_wait(*, wait: bool, timeout: float | None) -> None:
    """Raise UsageError where a limit was given to what doesn't wait."""
    if timeout is not None and not wait:
        path = click.get_current_context().command_path
        raise UsageError("--timeout needs --wait", f"{path} --help")
