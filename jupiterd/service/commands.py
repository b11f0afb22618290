"""`jupiterd service`: install, uninstall, status, logs.

Owns the commands' options and what they print. Doesn't know systemd or launchd (`init_system`).
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from jupiterd.daemon.runtime.clock import wall_iso_before
from jupiterd.daemon.runtime.options import DaemonOptions, daemon_options
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import ExitCode, NotFoundError, UsageError
from jupiterd.service.init_system import InitSystem, init_system_of, init_systems
from jupiterd.service.preconditions import (
    is_outdated,
    requested_service,
    require_free,
    require_rights,
)
from jupiterd.service.service_status import status_document, status_lines
from jupiterd.service.steps import Step, carry_out

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


def scope_options(command: CommandFunction) -> CommandFunction:
    """Give a command the options that say whose service is meant."""
    for option in (
        click.option("--agent", "scope", flag_value="user", help="The same as --user, on a Mac."),
        click.option("--user", "scope", flag_value="user", help="This user's own service."),
        click.option("--system", "scope", flag_value="system", help="The machine's service."),
    ):
        command = option(command)
    return command


@click.command("install")
@scope_options
@click.option("--run-as", metavar="USER", help="Whom the machine's service runs as.")
@click.option("--print", "prints", is_flag=True, help="Only print the file that would be written.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
@daemon_options
@click.pass_context
def install(
    context: click.Context,
    *,
    scope: str | None,
    run_as: str | None,
    prints: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Install jupiterd as a service, enable it and start it; the same again changes nothing.

    After an upgrade the same again starts the new version.

    It is the user's own on Linux (the machine's, where root runs this), and the machine's on a Mac.
    Options of the daemon are passed on: the service starts with them.

    \b
    Examples:
      jupiterd service install
      jupiterd service install --peer 192.168.1.20 --devices 0,1
      sudo "$(command -v jupiterd)" service install --system
      jupiterd service install --print
    """  # noqa: D301 - click's mark for lines that keep their ends
    given = DaemonOptions.of(options).over(context.find_root().obj or DaemonOptions.of({}))
    init_system = init_system_of(scope)
    request = requested_service(init_system.scope, given, run_as)
    if prints:
        click.echo(init_system.text(request).decode(), nl=False)
        return
    init_system.require()
    current = init_system.status()
    steps = init_system.install(
        request, current, is_outdated=current.is_running and is_outdated(request)
    )
    if dry_run:
        _print_plan(steps)
        return
    require_rights(
        init_system.scope, "install", (*_scope_arguments(init_system, run_as), *given.arguments())
    )
    require_free(request, current)
    carry_out(steps)
    click.echo(f"jupiterd runs as a service of {init_system.name}: {init_system.file}")
    if note := init_system.note(request):
        click.echo(f"note: {note}")


@click.command("uninstall")
@scope_options
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
def uninstall(scope: str | None, *, dry_run: bool) -> None:
    """End the service and take its file away; keys, ledger and models stay.

    \b
    Examples:
      jupiterd service uninstall
      sudo "$(command -v jupiterd)" service uninstall --system
    """  # noqa: D301 - click's mark for lines that keep their ends
    init_system = _installed(scope)
    if init_system is None:
        click.echo("there is no service to uninstall")
        return
    kept, steps = init_system.status().state_dir, init_system.uninstall()
    if dry_run:
        _print_plan(steps)
        return
    require_rights(init_system.scope, "uninstall", _scope_arguments(init_system))
    carry_out(steps)
    click.echo(f"uninstalled; its state stays in {kept}" if kept else "uninstalled")


@click.command("status")
@scope_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "jsonl"]),
    default="table",
    help="Form of the output.",
)
def status(scope: str | None, output: str) -> None:
    """Say whether the service is installed, enabled and running, since when, and by which file.

    The exit status is 8 where it is installed and doesn't run, 6 where it isn't installed.
    """
    init_system = _installed(scope) or init_system_of(scope)
    current = init_system.status()
    since = None if current.running_s is None else wall_iso_before(current.running_s)
    document = {"schema": SCHEMA, "service": status_document(current, since)}
    _show(document, status_lines(current, since), output)
    if not current.is_running:
        sys.exit(ExitCode.UNHEALTHY if current.is_installed else ExitCode.NOT_FOUND)


@click.command("logs")
@scope_options
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=50, show_default=True, help="How many."
)
@click.option("--print", "prints", is_flag=True, help="Only print the command that shows them.")
def logs(scope: str | None, *, follow: bool, lines: int, prints: bool) -> None:
    """Show what the service has logged: systemd's journal, or the log in its state folder."""
    init_system = _installed(scope)
    if init_system is None:
        raise NotFoundError("there is no service here", "jupiterd service install")
    command = init_system.log_command(lines, follows=follow)
    if prints:
        click.echo(shlex.join(command))
    elif not _ran(command):
        sys.exit(ExitCode.FAILED)


COMMANDS: Mapping[str, click.Command] = {
    command.name or "": command for command in (install, uninstall, status, logs)
}


def _installed(scope: str | None) -> InitSystem | None:
    """Return what keeps the service that is meant; None where there is none.

    Raises:
        UsageError: there are two, and neither was named.
    """
    found = [init_system for init_system in init_systems(scope) if init_system.file.is_file()]
    if len(found) > 1:
        raise UsageError(
            "there are two services here, the machine's and this user's",
            "say which one with --system or --user",
        )
    return found[0] if found else None


def _scope_arguments(init_system: InitSystem, run_as: str | None = None) -> tuple[str, ...]:
    return (f"--{init_system.scope}", *(("--run-as", run_as) if run_as else ()))


def _print_plan(steps: Sequence[Step]) -> None:
    for step in steps:
        click.echo(f"would {step.description()}")


def _show(document: Mapping[str, Any], lines: Sequence[str], output: str) -> None:
    if output == "table":
        click.echo("\n".join(lines))
    else:
        click.echo(json.dumps(document, ensure_ascii=False, indent=2 if output == "json" else None))


def _ran(command: Sequence[str]) -> bool:
    """Run what shows a log; say whether it did."""
    try:
        return subprocess.run(command, check=False).returncode == 0
    except FileNotFoundError:
        return False
    except KeyboardInterrupt:
        return True
