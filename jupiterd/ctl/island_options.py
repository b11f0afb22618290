"""What people say of islands where they start a training or a cycle, in the same words.

Owns the options. Doesn't know what follows from them: the daemon does.
"""

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

NAMES = ("islands", "sync_every", "sync", "outer", "ways")


def island_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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
        help="How often islands exchange; as the planner thinks best unless told.",
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
