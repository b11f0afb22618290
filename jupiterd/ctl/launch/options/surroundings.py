"""The options of `jupiterctl launch` about a script's environment: Python, folder, devices.

Owns their texts. Doesn't apply them (`launch_request`).
"""

from collections.abc import Callable
from typing import Any

import click

from jupiterd.ctl.launch.working_folder import LIMIT_MIB

Command = Callable[..., Any]


def surroundings_options(command: Command) -> Command:
    """Add these options to a command, which gets each by its name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--python",
        default="",
        metavar="PATH|venv|jupiter",
        help="The Python on every machine; the active environment's by default.",
    ),
    click.option(
        "--env",
        "variables",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="A variable that every process gets, as it is here or as given; may be repeated.",
    ),
    click.option(
        "--chdir",
        default="",
        metavar="DIR",
        help="Run there; the folder where this is typed by default.",
    ),
    click.option(
        "--workdir-map",
        "folder_map",
        multiple=True,
        metavar="[NAME:]A=B",
        help="Folders below A here lie below B on other machines, or on one; may be repeated.",
    ),
    click.option(
        "--ship",
        is_flag=True,
        help="Bring the folder to the other machines, without what git ignores.",
    ),
    click.option(
        "--ship-also",
        multiple=True,
        metavar="PATH",
        help="A file or folder below it that travels although it is ignored; may be repeated.",
    ),
    click.option(
        "--ship-limit",
        type=click.IntRange(1, 1 << 20),
        default=LIMIT_MIB,
        metavar="MIB",
        help=f"Ship no more than that; {LIMIT_MIB} MiB by default.",
    ),
    click.option(
        "--allow-differences",
        is_flag=True,
        help="Run even where the script's files aren't the same on all machines.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1, 4096),
        default=None,
        metavar="N",
        help="Threads of each process; its share of the cores by default.",
    ),
    click.option(
        "--devices",
        multiple=True,
        metavar="[NAME=]cpu|0,1",
        help="CUDA devices to use, on all machines or on one; all by default.",
    ),
    click.option(
        "--per-node",
        default="",
        metavar="N|N,N,...|NAME=N,...",
        help="Processes on each machine; one for each GPU, or one, by default.",
    ),
)
