"""jupiterd's command line.

Owns the flags, the names of the commands, the signals and the exit status. Everything else is the
node's.
"""

import asyncio
import signal
import sys
from typing import Any

import click

from jupiterd import __version__
from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.daemon.runtime.options import DaemonOptions, daemon_options
from jupiterd.error_groups import all_of
from jupiterd.errors import ExitCode, JupiterError
from jupiterd.usage_errors import usage_error

SERVICE_COMMANDS = ("install", "uninstall", "status", "logs")


class ServiceGroup(click.Group):
    """Imports the service commands when one of them runs: a daemon never loads them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which they are shown."""
        return list(SERVICE_COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Return a command by its name."""
        if cmd_name not in SERVICE_COMMANDS:
            return None
        from jupiterd.service.commands import COMMANDS

        return COMMANDS[cmd_name]


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jupiterd")
@daemon_options
@click.pass_context
def cli(context: click.Context, **options: Any) -> None:
    """Run Jupiter on this machine.

    Start it on each machine, and they find each other.

    \b
    Examples:
      jupiterd                      join the machines on this network
      jupiterd --peer 192.168.1.20  where multicast doesn't reach
      jupiterd --local --port 0 --state-dir d1 --threads 1  one of several here
    """  # noqa: D301 - click's mark for lines that keep their ends
    context.obj = DaemonOptions.of(options)
    if context.invoked_subcommand is None:
        run_daemon(context.obj)


@cli.command()
@click.pass_context
def run(context: click.Context) -> None:
    """Run the daemon in the foreground (the same as no command)."""
    run_daemon(context.obj)


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
    from jupiterd.daemon.app.doctor_command import look
    from jupiterd.daemon.runtime.settings import environment, load_settings

    options: DaemonOptions = context.obj
    settings, _ = load_settings(options.settings, environment(), options.config)
    sys.exit(look(settings, output))


@cli.command()
@click.option(
    "--term", type=click.IntRange(0, MAX_NUMBER), help="The highest term, where you know it."
)
@click.pass_context
def heal(context: click.Context, term: int | None) -> None:
    """Take out terms of the ledger that no cluster comes to, while jupiterd is stopped here.

    A cluster elects nobody any more that has believed one. Stop jupiterd on every machine, run this
    on every machine, and start them again.
    """
    from jupiterd.daemon.app.heal_command import heal_state
    from jupiterd.daemon.runtime.settings import environment, load_settings
    from jupiterd.daemon.runtime.state_dir import StateDir
    from jupiterd.processes import umask

    umask.be_private()
    options: DaemonOptions = context.obj
    settings, _ = load_settings(options.settings, environment(), options.config)
    state_dir = StateDir.open(settings.state_dir)
    try:
        click.echo("\n".join(heal_state(state_dir, term)))
    finally:
        state_dir.close()


@cli.group("service", cls=ServiceGroup)
def service() -> None:
    """Have this machine start jupiterd by itself, and again when it fails.

    \b
    Examples:
      jupiterd service install                     from now on, and at every start
      jupiterd service install --peer 192.168.1.20
      jupiterd service status
    """  # noqa: D301 - click's mark for lines that keep their ends


def run_daemon(options: DaemonOptions) -> None:
    """Load the settings, take the state folder and serve until a signal comes."""
    import logging
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: its log is not ours
    from jupiterd.daemon.app.node import Node
    from jupiterd.daemon.app.process_resources import (
        freeze_loaded_objects,
        raise_open_file_limit,
        use_one_malloc_arena,
    )
    from jupiterd.daemon.app.run_daemon import serve
    from jupiterd.daemon.artifacts.scratch_dirs import remove_stale
    from jupiterd.daemon.runtime.logs import log_to_file, start_logging
    from jupiterd.daemon.runtime.settings import environment, load_settings
    from jupiterd.daemon.runtime.state_dir import StateDir
    from jupiterd.locations import DAEMON_LOG
    from jupiterd.processes import umask
    from jupiterd.processes.orphans import reap

    umask.be_private()
    use_one_malloc_arena()
    freeze_loaded_objects()
    start_logging(logging.DEBUG if options.debug else logging.INFO, is_quiet=options.quiet)
    raise_open_file_limit()
    settings, sources = load_settings(options.settings, environment(), options.config)
    state_dir = StateDir.open(settings.state_dir)
    log_to_file(state_dir.logs / DAEMON_LOG)
    reap(state_dir.logs)
    state_dir.empty_spool()
    state_dir.empty_large_graphs()
    remove_stale(state_dir.scratch)

    def stop_with_terminal(node: Node) -> None:
        if not node.is_closing:  # a terminal that closes says so twice, and nobody is impatient
            node.stop()

    def stop_on_signals(node: Node) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, node.stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else it is nohup's wish to last
            loop.add_signal_handler(signal.SIGHUP, stop_with_terminal, node)

    try:
        asyncio.run(serve(settings, sources, state_dir, stop_on_signals))
    except* JupiterError as group:
        fail(all_of(group)[0])


def main() -> None:
    """Run the command line; every error the user can meet is one line and a hint."""
    try:
        cli(prog_name="jupiterd", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(ExitCode.INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:  # such as `jupiterd service`
        error.show()
        sys.exit(ExitCode.USAGE)
    except click.ClickException as error:
        fail(usage_error(error, "jupiterd"))
    except JupiterError as error:
        fail(error)


def fail(error: JupiterError) -> None:
    """Print what went wrong and what to do, and exit with the error's code."""
    click.echo(f"jupiterd: error: {error.message}\n\nhint: {error.hint}", err=True)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
