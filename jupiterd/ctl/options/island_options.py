"""The options about islands, which trainings and cycles share.

Owns the options. Doesn't apply them: the daemon does.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from jupiterd.errors import UsageError

Command = Callable[..., Any]

ONLY_WITH_ISLANDS = ("sync_every", "sync", "outer", "ways")
OF_ISLANDS = ("islands", *ONLY_WITH_ISLANDS)


def island_options(command: Command) -> Command:
    """Add the options to a command, which then raises UsageError if they contradict each other.

    `--islands off` excludes the others only here: in a cluster file, the daemon accepts both.
    """

    @wraps(command)
    def checked(*args: object, **options: object) -> object:
        given = [name for name in ONLY_WITH_ISLANDS if options[name] is not None]
        if options["islands"] == "off" and given:
            option = given[0].replace("_", "-")
            raise UsageError(
                f"--{option} says how islands train, and --islands off says that there are none",
                "leave one of the two out",
            )
        return command(*args, **options)

    for option in reversed(_OPTIONS):
        checked = option(checked)
    return checked


_OPTIONS = (
    click.option(
        "--islands",
        metavar="auto|on|off|WHO",
        help="Let machines train apart and exchange what they have learned now and then, such as "
        "'mlx:mini torch:box1,box2'; auto.",
    ),
    click.option(
        "--sync-every",
        type=click.IntRange(1),
        metavar="STEPS",
        help="How often islands exchange; as the planner chooses by default.",
    ),
    click.option(
        "--sync",
        type=click.Choice(("blocking", "overlapped")),
        help="Whether islands wait for the exchange, or train on meanwhile; overlapped.",
    ),
    click.option(
        "--outer", type=click.Choice(("nesterov", "average")), help="How islands merge; nesterov."
    ),
    click.option(
        "--ways", type=click.Choice(("int8", "bf16", "fp32")), help="How islands send; int8."
    ),
)
