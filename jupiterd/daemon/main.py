"""jupiterd's command line.

Owns the flags, the signals and the exit status. Everything else is the node's.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import click

from jupiterd import __version__
from jupiterd.errors import ExitCode, JupiterError, all_of


@click.group(invoke_without_command=True)
@click.version_option(__version__, prog_name="jupiterd")
@click.option("--config", type=click.Path(path_type=Path), help="A jupiter.yaml with settings.")
@click.option("--name", help="This node's name in tables; default: the host name.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), help="Where key, ledger and models lie."
)
@click.option("--interface", multiple=True, help="Network interface to use; may be repeated.")
@click.option("--peer", multiple=True, help="HOST[:PORT] of another node; may be repeated.")
@click.option("--cluster", metavar="FILE", help="A cluster.yaml that describes the machines.")
@click.option("--scope", metavar="NAME", help="Find by multicast only daemons of this scope.")
@click.option("--join", metavar="TOKEN", help="Join that cluster: jupiterctl cluster token.")
@click.option("--closed", is_flag=True, default=None, help="Found a cluster that lets nobody in.")
@click.option("--trust-lan", is_flag=True, default=None, help="As leader, let everybody in.")
@click.option("--port", type=int, help="TCP port for other nodes; 0 lets the system choose.")
@click.option("--threads", type=int, help="Threads of each worker process; default: all cores.")
@click.option("--devices", metavar="cpu|0,1", help="Where to train; default: all GPUs, or CPU.")
@click.option("--allow-scripts", is_flag=True, default=None, help="Members may run scripts here.")
@click.option("--metrics", metavar="[HOST:]PORT", help="Serve metrics for Prometheus there.")
@click.option("--local", is_flag=True, default=None, help="Use the loopback interface only.")
@click.option("--debug", is_flag=True, help="Log more, and show tracebacks.")
@click.pass_context
def cli(context: click.Context, config: Path | None, debug: bool, **flags: Any) -> None:  # noqa: FBT001
    """Run Jupiter on this machine.

    Start it on each machine, and they find each other.

    \b
    Examples:
      jupiterd                                  join the machines on this network
      jupiterd --peer 192.168.1.20              where multicast doesn't reach
      jupiterd --local --port 0 --state-dir d1  several on one machine
    """  # noqa: D301 - click's mark for lines that keep their ends
    context.obj = (
        config,
        debug,
        {key: value for key, value in flags.items() if value not in (None, ())},
    )
    if context.invoked_subcommand is None:
        run_daemon(*context.obj)


@cli.command()
@click.pass_context
def run(context: click.Context) -> None:
    """Run the daemon in the foreground (the same as no command)."""
    run_daemon(*context.obj)


@cli.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "jsonl"]),
    default="table",
    help="Form of the output.",
)
@click.pass_context
def doctor(context: click.Context, output: str) -> None:
    """Look for what may be wrong with this machine, and print fixes; nothing is changed.

    The exit status is 8 where something fails.
    """
    from jupiterd.daemon.doctor_command import look
    from jupiterd.daemon.settings import environment, load_settings

    config, _, flags = context.obj
    settings, _ = load_settings(flags, environment(), config)
    sys.exit(look(settings, output))


def run_daemon(config: Path | None, debug: bool, flags: dict[str, Any]) -> None:  # noqa: FBT001
    """Load the settings, take the state folder and serve until a signal comes."""
    import logging
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: its log is not ours
    from jupiterd.daemon.allocator import share_one_arena
    from jupiterd.daemon.giving_back import keep_what_is_loaded
    from jupiterd.daemon.logs import log_to_file, start_logging
    from jupiterd.daemon.node import Node
    from jupiterd.daemon.open_files import allow_many_open_files
    from jupiterd.daemon.scratch import remove_stale
    from jupiterd.daemon.serving import serve
    from jupiterd.daemon.settings import environment, load_settings
    from jupiterd.daemon.state_dir import StateDir
    from jupiterd.gang.orphans import reap
    from jupiterd.locations import DAEMON_LOG

    share_one_arena()
    keep_what_is_loaded()
    start_logging(logging.DEBUG if debug else logging.INFO)
    allow_many_open_files()
    settings, _ = load_settings(flags, environment(), config)
    state_dir = StateDir.open(settings.state_dir)
    log_to_file(state_dir.logs / DAEMON_LOG)
    reap(state_dir.logs)
    state_dir.empty_spool()
    remove_stale(state_dir.scratch)

    def stop_on_signals(node: Node) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, node.stop)

    try:
        asyncio.run(serve(settings, state_dir, stop_on_signals))
    except* JupiterError as group:
        fail(all_of(group)[0])


def main() -> None:
    """Run the command line; every error the user can meet is one line and a hint."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(ExitCode.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except JupiterError as error:
        fail(error)


def fail(error: JupiterError) -> None:
    """Tell the user what went wrong and what to do, and end."""
    click.echo(f"jupiterd: error: {error.message}\n\nhint: {error.hint}", err=True)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
