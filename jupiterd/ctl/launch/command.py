"""`jupiterctl launch`: runs a script that was written for torchrun or MLX, unchanged.

Owns the command line, the streams that ranks' output is written to, and the second process of a
detached launch. Doesn't know how ranks are run (`run`) or where (`places`).
"""

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.launch.launch_request import AUTO, LaunchRequest, read_request
from jupiterd.ctl.launch.options.life import life_options
from jupiterd.ctl.launch.options.ports import port_options
from jupiterd.ctl.launch.options.surroundings import surroundings_options
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.processes.script_plan import MLX, TORCH, LaunchAttempt


@click.command(cls=GlobalOptionsCommand, context_settings={"allow_interspersed_args": False})
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
    help="The machines to run on; this one alone by default.",
)
@port_options
@surroundings_options
@life_options
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

    A cut network or a restarted jupiterd ends nothing. jupiterctl launch list, logs and stop are
    for launches that run.

    \b
    Examples:
      jupiterctl launch --per-node 2 -- python train.py --epochs 3
      jupiterctl launch --nodes all --verbose -- python train.py
      jupiterctl launch --nodes all --ship -- python train.py
      jupiterctl launch --engine mlx --per-node 2 -- python mlx_train.py
    """  # noqa: D301 - click's mark for lines that keep their ends
    wanted = read_request(argv, options, os.environ)
    if invocation.is_dry_run:
        return asyncio.run(_shown(invocation, wanted))
    if not wanted.is_detached:
        return asyncio.run(_run(invocation, wanted, lambda _: None))

    def run(leave: Callable[[], None]) -> int:
        def begun(launch: str) -> None:
            _say_id(invocation, launch)
            leave()

        return asyncio.run(_run(invocation, wanted, begun))

    return _detached(run)


def _detached(run: Callable[[Callable[[], None]], int]) -> int:
    """Run a function in a process with its own session; return 0 once it has begun, or its status.

    run: gets a function to call once it has begun; errors before that call still go to this
    terminal
    """
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            if pipe.read(1):
                return 0
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(reader)
    os.setsid()
    return run(lambda: _leave_terminal(writer))


def _leave_terminal(writer: int) -> None:
    """Redirect the standard streams to /dev/null, and wake the process that waits; call it once."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    with os.fdopen(writer, "wb", 0) as pipe:
        pipe.write(b"1")


async def _shown(invocation: Invocation, wanted: LaunchRequest) -> int:
    from jupiterd.ctl.launch.described import dry_run_lines, launch_document
    from jupiterd.ctl.launch.places import AttemptOpening, prepare

    async with AsyncExitStack() as stack:
        opening = AttemptOpening(LaunchAttempt("jupiter"))
        prepared = await prepare(stack, invocation.state_dir, wanted, opening)
        document = launch_document(prepared)
        Console.of(invocation).show(document, lambda: dry_run_lines(prepared))
        return 0


async def _run(invocation: Invocation, wanted: LaunchRequest, begun: Callable[[str], None]) -> int:
    from jupiterd.ctl.launch.attempts import Attempts
    from jupiterd.ctl.launch.rank_output import RankOutput
    from jupiterd.ctl.launch.recording import recording
    from jupiterd.ctl.launch.reporter import LaunchReporter
    from jupiterd.ctl.launch.result import LaunchResult
    from jupiterd.ctl.launch.terminal.terminal_output import TerminalOutput, can_draw, terminal_size

    with recording(wanted, invocation.state_dir) as record:
        console = Console.of(invocation)
        has_result = not (console.is_table or wanted.is_detached)
        has_terminal = not wanted.is_detached and sys.stdout.isatty() and sys.stderr.isatty()
        shown = None if wanted.is_verbose else (0,)
        if has_terminal and can_draw() and not has_result:
            output = TerminalOutput(_write_piece, terminal_size, shown)
        else:
            output = RankOutput(_write_aside if has_result else _write, shown)
        reporter = LaunchReporter(output, console, record.events, has_terminal=has_terminal)
        reporter.result = LaunchResult(record.id) if has_result else None
        attempts = Attempts(wanted, invocation.state_dir, reporter, record)
        return await attempts.run(lambda: begun(record.id))


def _say_id(invocation: Invocation, launch: str) -> None:
    """Print the id of a detached launch, and the command that shows its output."""
    said = f"launch {launch} runs by itself; jupiterctl launch logs -f {launch} shows how it goes"
    document = {"schema": SCHEMA, "launch": {"id": launch}}
    Console.of(invocation).show(document, lambda: [said])


def _write_aside(line: bytes, _is_error: bool) -> None:  # noqa: FBT001 - a callback's signature
    """Write the ranks' output to standard error, because standard output is for the result."""
    _write(line, True)  # noqa: FBT003


def _write_piece(piece: bytes, is_error: bool) -> None:  # noqa: FBT001 - a callback's signature
    stream = sys.stderr.buffer if is_error else sys.stdout.buffer  # a piece may split a character
    with _while_it_is_there():
        stream.write(piece)
        stream.flush()


def _write(line: bytes, is_error: bool) -> None:  # noqa: FBT001 - a callback's signature
    stream = sys.stderr if is_error else sys.stdout
    with _while_it_is_there():
        stream.write(line.decode("utf-8", "replace"))
        stream.flush()


@contextmanager
def _while_it_is_there() -> Generator[None]:
    """Ignore the write error of a closed terminal: its SIGHUP ends the ranks."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
