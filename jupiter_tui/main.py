"""jupiter-tui: opens the dashboard on the local daemon.

Owns the command line, the exit status, and what must be settled before anything is drawn.
Doesn't know the screens, and imports them only when there is a terminal to show them on.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from jupiterd.errors import ExitCode, JupiterError, UsageError
from jupiterd.locations import state_dir

if TYPE_CHECKING:
    from jupiter_tui.scene import Options

MIN_HZ, MAX_HZ, DEFAULT_HZ = 0.2, 10.0, 2.0


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--state-dir",
    "named_dir",
    metavar="DIR",
    help="State folder of the daemon to watch (or JUPITER_STATE_DIR).",
)
@click.option("--readonly", is_flag=True, help="Offer nothing that changes the cluster.")
@click.option("--ascii", "is_ascii", is_flag=True, help="Draw with ASCII characters alone.")
@click.option(
    "--refresh",
    "refresh_hz",
    type=click.FloatRange(MIN_HZ, MAX_HZ),
    metavar="HZ",
    default=DEFAULT_HZ,
    help=f"Updates of the screen per second, {MIN_HZ:g} to {MAX_HZ:g}; {DEFAULT_HZ:g} by default.",
)
def cli(named_dir: str | None, *, readonly: bool, is_ascii: bool, refresh_hz: float) -> int:
    """Show the cluster that this machine belongs to, and its training, as they change.

    \b
    Examples:
      jupiter-tui
      jupiter-tui --state-dir .demo/node-1
      NO_COLOR=1 jupiter-tui --ascii

    Keys: 1 cluster, 2 training, 3 data, 4 cycles, p pause, ? help, q quit. NO_COLOR is heeded.
    """  # noqa: D301 - click's mark for lines that keep their ends
    _require_terminal()
    # The dashboard owns standard error, and gRPC's core would write its own lines across it.
    os.environ["GRPC_VERBOSITY"] = "NONE"
    from jupiter_tui.scene import Options

    options = Options(
        state_dir(named_dir), is_readonly=readonly, is_ascii=is_ascii, refresh_hz=refresh_hz
    )
    return asyncio.run(_show(options))


async def _show(options: "Options") -> int:
    from jupiter_tui.app import JupiterTui

    app = JupiterTui(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Or the terminal is left as it was drawn on.
        loop.add_signal_handler(number, app.exit)
    await app.run_async()
    return app.return_code or ExitCode.OK


def _require_terminal() -> None:
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
        message = error.format_message()
        sentence = (message[:1].lower() + message[1:]).removesuffix(".")
        return _report(UsageError(sentence, "jupiter-tui --help"))
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
