"""The options of `jupiterctl launch` about the ports of a script.

Owns their texts and bounds. Doesn't know what closes a port (`processes.scripts`).
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from jupiterd.errors import UsageError
from jupiterd.processes.script_plan import LAST_PORT, MAX_OPEN_PORTS, PortRange

Command = Callable[..., Any]

_PORTS: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def port_options(command: Command) -> Command:
    """Add these options to a command, which gets each by its name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_ports_of(given: Sequence[str]) -> tuple[PortRange, ...]:
    """Return the ranges of texts like PORT and FIRST-LAST; raise UsageError."""
    if len(given) > MAX_OPEN_PORTS:
        raise UsageError(f"--open-port more than {MAX_OPEN_PORTS} times", "give a range")
    return tuple(map(_range, given))


def _range(text: str) -> PortRange:
    found = _PORTS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= LAST_PORT:
        raise UsageError(f"--open-port {text} is no port", "such as 6006 or 8000-8010")
    return PortRange(first, last)


_OPTIONS = (
    click.option(
        "--master-port",
        type=click.IntRange(1, LAST_PORT),
        default=None,
        metavar="P",
        help="The port where the ranks meet; a free one by default.",
    ),
    click.option(
        "--open-port",
        "open_ports",
        multiple=True,
        metavar="P|P-P",
        help="A port of the script that others than the launch's machines may reach; repeatable.",
    ),
)
