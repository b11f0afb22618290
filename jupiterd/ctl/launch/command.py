"""`jupiterctl launch`: runs a script that was written for torchrun or MLX, as it is.

Owns the command line, and what is found out about the script before it runs. Doesn't know how
ranks are run (`run`) or where (`places`).
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import click

from jupiterd.ctl.commands import Command
from jupiterd.ctl.console import Console
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.launch.surroundings import AUTO, Wanted, read_wanted
from jupiterd.ctl.launch.surroundings_options import surroundings_options
from jupiterd.gang.script_plan import MLX, TORCH


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.option(
    "--engine",
    type=click.Choice([AUTO, TORCH, MLX]),
    default=AUTO,
    help="What the script is written for; auto looks what it imports, and says it.",
)
@click.option(
    "--nodes",
    default="",
    metavar="all|N|NAME,...",
    help="The machines to run on; this one alone unless told otherwise.",
)
@click.option(
    "--master-port",
    type=click.IntRange(1, 65535),
    default=None,
    metavar="P",
    help="The port where the ranks meet; a free one unless told otherwise.",
)
@surroundings_options
@click.option("--verbose", is_flag=True, help="Show what all ranks print, not rank 0 alone.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@dry_run
@click.pass_obj
def command(invocation: Invocation, argv: tuple[str, ...], **options: Any) -> int:
    """Run a script that is written for torchrun (env://) or for mlx.distributed, unchanged.

    It runs on this machine, with or without a jupiterd. On other machines it runs in the folder of
    the same path, or that --ship brings, and only where their owners set allow_scripts. Each line
    has its rank before it. The exit status is that of the process that failed first; when one
    fails, the others are ended.

    \b
    Examples:
      jupiterctl launch --per-node 2 -- python train.py --epochs 3
      jupiterctl launch --nodes all --verbose -- python train.py
      jupiterctl launch --nodes all --ship -- python train.py
      jupiterctl launch --engine mlx --per-node 2 -- python mlx_train.py
    """  # noqa: D301 - click's mark for lines that keep their ends
    return asyncio.run(_launched(invocation, read_wanted(argv, options, os.environ)))


async def _launched(invocation: Invocation, wanted: Wanted) -> int:
    from jupiterd.ctl.launch.described import dry_run_lines, launch_document, notices
    from jupiterd.ctl.launch.places import open_sites, prepare
    from jupiterd.ctl.launch.rank_output import RankOutput
    from jupiterd.ctl.launch.run import LaunchRun
    from jupiterd.ctl.launch.shipping import shipped

    console = Console.of(invocation)
    output = RankOutput(_write, shown=None if wanted.is_verbose else (0,))
    async with AsyncExitStack() as stack:
        prepared = await prepare(stack, invocation.state_dir, wanted)
        if invocation.is_dry_run:
            console.show(launch_document(prepared), lambda: dry_run_lines(prepared))
            return 0
        for line in notices(prepared):
            console.notice(line)
        prepared = await shipped(prepared, console.notice)
        sites = await open_sites(stack, prepared)
        return await LaunchRun(sites, output, console).run()


def _write(line: bytes, is_error: bool) -> None:  # noqa: FBT001 - a callback's signature
    stream = sys.stderr if is_error else sys.stdout
    stream.write(line.decode("utf-8", "replace"))
    stream.flush()
