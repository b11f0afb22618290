"""`jupiterctl launch`: runs a script that was written for torchrun or MLX, as it is.

Owns the command line, and what is found out about the script before it runs. Doesn't know how
ranks are run (`run`) or where (`places`).
"""

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from jupiterd.ctl.commands import Command
from jupiterd.ctl.console import Console
from jupiterd.ctl.invocation import Invocation
from jupiterd.errors import UsageError
from jupiterd.gang.script_plan import MAX_PER_NODE, MLX, TORCH

MAX_SCRIPT_BYTES: Final = 1 << 20
_MLX_IMPORT: Final = re.compile(r"^\s*(import|from)\s+mlx\b", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    argv: tuple[str, ...]
    script: str
    """The file that is run, as an absolute path; empty where none can be told."""
    engine: str
    nodes: str
    """Empty for this machine."""
    per_node: int
    """0 for one for each GPU, or one."""
    master_port: int
    variables: Mapping[str, str]
    is_verbose: bool


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.option(
    "--engine",
    type=click.Choice(["auto", TORCH, MLX]),
    default="auto",
    help="What the script is written for; auto looks whether it imports mlx.",
)
@click.option(
    "--nodes",
    default="",
    metavar="all|N|NAME,...",
    help="The machines to run on; this one alone unless told otherwise.",
)
@click.option(
    "--per-node",
    type=click.IntRange(1, MAX_PER_NODE),
    default=None,
    metavar="N",
    help="Processes on each machine; one for each GPU, or one, unless told otherwise.",
)
@click.option(
    "--master-port",
    type=click.IntRange(1, 65535),
    default=None,
    metavar="P",
    help="The port where the ranks meet; a free one unless told otherwise.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="K=V",
    help="A variable that every process gets; may be repeated.",
)
@click.option("--verbose", is_flag=True, help="Show what all ranks print, not rank 0 alone.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option
    invocation: Invocation,
    engine: str,
    nodes: str,
    per_node: int | None,
    master_port: int | None,
    variables: tuple[str, ...],
    verbose: bool,  # noqa: FBT001 - click's way
    argv: tuple[str, ...],
) -> int:
    """Run a script that is written for torchrun (env://) or for mlx.distributed, unchanged.

    It runs on this machine, with or without a jupiterd. On other machines it runs in the folder of
    the same path, and only where their owners set allow_scripts. Each line has its rank before it.
    The exit status is that of the process that failed first; when one fails, the others are ended.

    \b
    Examples:
      jupiterctl launch --per-node 2 -- python train.py --epochs 3
      jupiterctl launch --nodes all --verbose -- python train.py
      jupiterctl launch --engine mlx --per-node 2 -- python mlx_train.py
    """  # noqa: D301 - click's mark for lines that keep their ends
    folder = Path.cwd()
    program = with_python(argv)
    script = script_of(program, folder)
    wanted = Wanted(
        argv=program,
        script=script,
        engine=engine_of(engine, script),
        nodes=nodes,
        per_node=per_node or 0,
        master_port=master_port or 0,
        variables=parsed_variables(variables),
        is_verbose=verbose,
    )
    return asyncio.run(_launched(invocation, wanted, folder))


async def _launched(invocation: Invocation, wanted: Wanted, folder: Path) -> int:
    from jupiterd.ctl.launch.places import open_sites
    from jupiterd.ctl.launch.rank_output import RankOutput
    from jupiterd.ctl.launch.run import LaunchRun

    console = Console.of(invocation)
    output = RankOutput(_write, shown=None if wanted.is_verbose else (0,))
    async with AsyncExitStack() as stack:
        sites = await open_sites(stack, invocation.state_dir, wanted, folder, console)
        return await LaunchRun(sites, output, console).run()


def with_python(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command; a script that is named alone is run by the Python that runs us."""
    return (sys.executable, *argv) if argv[0].endswith(".py") else tuple(argv)


def script_of(argv: Sequence[str], folder: Path) -> str:
    """Return the first argument that is a Python file here, as an absolute path."""
    for argument in argv:
        path = folder / argument
        if argument.endswith(".py") and path.is_file():
            return os.path.normpath(path)
    if named := next((argument for argument in argv[1:2] if argument.endswith(".py")), None):
        raise UsageError(f"there is no script {named} here", f"this is {folder}")
    return ""


def engine_of(wanted: str, script: str) -> str:
    """Return torch or mlx; where it wasn't said, by what the script imports."""
    if wanted != "auto" or not script:
        return wanted if wanted != "auto" else TORCH
    with Path(script).open("rb") as file:
        text = file.read(MAX_SCRIPT_BYTES).decode("utf-8", "replace")
    return MLX if _MLX_IMPORT.search(text) else TORCH


def parsed_variables(given: Sequence[str]) -> dict[str, str]:
    """Read K=V; raises UsageError."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not _NAME.fullmatch(name):
            raise UsageError(f"--env {text} is not K=V", "such as --env NCCL_DEBUG=INFO")
        found[name] = value
    return found


def _write(line: bytes, is_error: bool) -> None:  # noqa: FBT001 - a callback's signature
    stream = sys.stderr if is_error else sys.stdout
    stream.write(line.decode("utf-8", "replace"))
    stream.flush()
