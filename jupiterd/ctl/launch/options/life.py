"""The options of `jupiterctl launch` about time limits, restarts and detaching.

Owns their texts and bounds. Doesn't apply them (`attempts`, `remote_site`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from jupiterd.ctl.options.durations import DURATION
from jupiterd.errors import UsageError
from jupiterd.processes.scripts.launch_limits import MAX_CUT_TIMEOUT_S, MAX_RESTARTS

Command = Callable[..., Any]


def life_options(command: Command) -> Command:
    """Add these options to a command, which gets each by its name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def life_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return their values, by the field names of `LaunchRequest`; raise UsageError."""
    cut_timeout_s = float(options["cut_timeout"])
    if not 1 <= cut_timeout_s <= MAX_CUT_TIMEOUT_S:
        raise UsageError("--cut-timeout is a time between a second and a day", "such as 90s or 5m")
    return {
        "cut_timeout_s": int(cut_timeout_s),
        "max_restarts": int(options["max_restarts"]),
        "is_detached": bool(options["detach"]),
    }


_OPTIONS = (
    click.option(
        "--cut-timeout",
        type=DURATION,
        default="60s",
        metavar="TIME",
        help="How long a machine that isn't heard of is waited for; 60s by default.",
    ),
    click.option(
        "--max-restarts",
        type=click.IntRange(0, MAX_RESTARTS),
        default=0,
        metavar="N",
        help="How often all processes are started again after one has failed; 0 by default.",
    ),
    click.option("--detach", is_flag=True, help="Go on without this terminal; see launch list."),
)
