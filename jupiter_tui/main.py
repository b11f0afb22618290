"""jupiter-tui: opens the dashboard on the local daemon.

Owns the command line, the exit status, and what must be settled before anything is drawn.
Doesn't know the screens, and imports them only when there is a terminal to show them on.
"""

import asyncio
import gc
import os
import signal
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from jupiterd.errors import ExitCode, JupiterError, UsageError
from jupiterd.locations import state_dir
from jupiterd.usage_errors import usage_error

if TYPE_CHECKING:
    from jupiter_tui.model.scene import Options

FILE = click.Path(path_type=Path, dir_okay=False)
DRIVER = "TEXTUAL_DRIVER"
"""Variable that names Textual's driver where there is no terminal, as in a browser."""

DEFAULT_PORT = 8000
COLLECT_AFTER = (20_000, 20, 50)
"""See `gc.set_threshold`: a document of many nodes has thousands of parts."""
MIN_HZ, MAX_HZ, DEFAULT_HZ = 0.2, 10.0, 2.0
LOOK_S = 1.0
"""Seconds between two looks whether the terminal is still there."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--state-dir",
    "named_dir",
    metavar="DIR",
    help="State folder of the daemon to watch (or JUPITER_STATE_DIR).",
)
@click.option(
    "--readonly", "is_readonly", is_flag=True, help="Offer nothing that changes the cluster."
)
@click.option("--ascii", "is_ascii", is_flag=True, help="Draw with ASCII characters alone.")
@click.option(
    "--refresh",
    "refresh_hz",
    type=click.FloatRange(MIN_HZ, MAX_HZ),
    metavar="HZ",
    default=DEFAULT_HZ,
    help=f"Updates of the screen per second, {MIN_HZ:g} to {MAX_HZ:g}; {DEFAULT_HZ:g} by default.",
)
@click.option("--record", type=FILE, metavar="FILE", help="Write down what is seen.")
@click.option("--replay", type=FILE, metavar="FILE", help="Show what was written down.")
@click.option(
    "--speed", type=click.FloatRange(0.1, 1000.0), default=1.0, metavar="X", help="Of --replay."
)
@click.option(
    "--serve",
    "port",
    is_flag=False,
    flag_value=DEFAULT_PORT,
    type=click.IntRange(1, 65_535),
    metavar="[PORT]",
    help=f"Show it in browsers of this machine, on {DEFAULT_PORT} by default.",
)
def cli(named_dir: str | None, *, port: int | None, **chosen: Any) -> int:
    """Show the cluster that this machine belongs to, and its training, as they change.

    \b
    Examples:
      jupiter-tui
      jupiter-tui --state-dir .demo/node-1
      NO_COLOR=1 jupiter-tui --ascii
      jupiter-tui --record run.jsonl, and later: jupiter-tui --replay run.jsonl --speed 20
      jupiter-tui --serve 8000

    \b
    Keys: 1 cluster, 2 training, 3 data, 4 cycles, 5 events,
    p pause, ? help, q quit. NO_COLOR is heeded.
    """  # noqa: D301 - click's mark for lines that keep their ends
    watched = state_dir(named_dir)
    if port is not None:
        from jupiter_tui.web.server import serve

        if chosen["record"] is not None:
            raise UsageError(
                "each visitor of --serve would write the same file", "leave --record out"
            )
        return serve(port, sys.argv[1:])
    _require_terminal()
    # The dashboard owns standard error, and gRPC's core would write its own lines across it.
    os.environ["GRPC_VERBOSITY"] = "NONE"
    from jupiter_tui.model.scene import Options

    replay: Path | None = chosen["replay"]
    if replay is not None:
        from jupiter_tui.model.recorder import check_recording

        check_recording(replay)
        chosen["is_readonly"] = True
    return asyncio.run(_show(Options(watched, watched if named_dir else None, **chosen)))


async def _show(options: "Options") -> int:
    from jupiter_tui.app import JupiterTui

    # Documents are freed by reference counting as soon as the next one arrives; what stays in
    # memory is large, and each pass of the garbage collector over it would cost time.
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    app = JupiterTui(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Without it the terminal would stay in the dashboard's drawing mode.
        loop.add_signal_handler(number, app.exit)
    watching = None
    if DRIVER not in os.environ:
        watching = loop.create_task(_watch_terminal(sys.stdin.fileno(), app.exit))
    await app.run_async()
    if watching is not None:
        watching.cancel()
    return app.return_code or ExitCode.OK


async def _watch_terminal(descriptor: int, on_gone: Callable[[], object]) -> None:
    """Call `on_gone` once, when the terminal behind a descriptor was closed.

    Whoever closes a terminal mostly sends SIGHUP, but not to a process of another session, as under
    sudo or a wrapper script: that one would read the end of its input for ever, and take a whole
    core for it.
    """
    while not _is_gone(descriptor):  # noqa: ASYNC110 - a terminal sends no event for it
        await asyncio.sleep(LOOK_S)
    on_gone()


def _is_gone(descriptor: int) -> bool:
    """Say whether the terminal behind a descriptor was closed, or is none any more."""
    try:
        termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):
        return True
    return False


def _require_terminal() -> None:
    if DRIVER in os.environ:  # a browser, or somebody else's terminal
        return
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in streams) or os.environ.get("TERM") == "dumb":
        raise UsageError(
            "the dashboard needs a terminal, and this isn't one",
            "jupiterctl status, or jupiterctl cycle watch, write lines instead",
        )


def run(arguments: Sequence[str]) -> int:
    """Do what the command line says; return the exit status."""
    try:
        result = cli.main(list(arguments), prog_name="jupiter-tui", standalone_mode=False)
    except JupiterError as error:
        return _report(error)
    except click.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        return _report(usage_error(error, "jupiter-tui"))
    return result if isinstance(result, int) else ExitCode.OK


def _report(error: JupiterError) -> int:
    """Say on standard error what went wrong; return the exit status."""
    sys.stderr.write(f"jupiter-tui: error: {error.message}\n\nhint: {error.hint}\n")
    return error.exit_code


def main() -> NoReturn:
    """Run as a program."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
