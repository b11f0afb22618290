"""`jupiterctl logs`: shows logs of the daemon and its workers, read from the state folder.

With --node, shows the log that another machine's daemon has sent to the local daemon.
"""

from pathlib import Path
from threading import Event

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.diagnose.log_tail import FollowedLog
from jupiterd.ctl.diagnose.node_log import NodeLog
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.locations import DAEMON_LOG, LOGS

SUFFIX = ".log"
DAEMON_NAME = Path(DAEMON_LOG).stem
LOOK_S = 0.5
NODE_LOOK_S = 2.0
"""Seconds between requests; the local daemon asks the other one every four seconds."""
SHOWN_NAMES = 5


@click.command(cls=GlobalOptionsCommand)
@click.argument("worker", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=50, show_default=True, help="How many."
)
@click.option("--node", help="The daemon's log of that machine, as it was sent to this one.")
@click.option("--list", "lists", is_flag=True, help="Only name the logs that there are.")
@click.pass_obj
def command(
    invocation: Invocation,
    worker: str | None,
    *,
    follow: bool,
    lines: int,
    node: str | None,
    lists: bool,
) -> None:
    """Show the daemon's log on this machine, or that of WORKER; asks no daemon.

    WORKER is a name that --list shows, or a part of it: the newest that fits is taken. With --node
    it is the log of that machine's daemon, its latest 200 lines: its workers' stay there.

    \b
    Examples:
      jupiterctl logs -f
      jupiterctl logs --list
      jupiterctl logs r1-train -n 200
      jupiterctl logs --node mac-mini -f
    """  # noqa: D301 - click's mark for lines that keep their ends
    console, folder = Console.of(invocation), invocation.state_dir / LOGS
    if node is not None:
        _show_node(invocation, node, lines, worker=worker, follow=follow, lists=lists)
        return
    if lists:
        names = [path.stem for path in _newest_first(folder)]
        console.show({"schema": SCHEMA, "logs": names}, lambda: names)
        return
    path = _meant(folder, worker)
    tail = FollowedLog(path)
    _show(console, path.stem, tail.last(lines))
    while follow:
        pause(LOOK_S)
        if new := tail.new():
            _show(console, path.stem, new)


def _show_node(
    invocation: Invocation, node: str, count: int, *, worker: str | None, follow: bool, lists: bool
) -> None:
    if worker is not None or lists:
        raise UsageError(
            "the logs of workers are read on their own machine",
            f"without them: jupiterctl logs --node {node}",
        )
    console, log = Console.of(invocation), NodeLog(invocation.state_dir, node)
    _show(console, DAEMON_NAME, log.last(count), log.name)
    last_note = ""
    while follow:
        if log.note and log.note != last_note:
            console.notice(f"{log.note}; what comes is shown once it answers")
        last_note = log.note
        pause(NODE_LOOK_S)
        if new := log.new():
            _show(console, DAEMON_NAME, new, log.name)


def pause(seconds: float) -> None:
    """Sleep for `seconds`; Ctrl-C ends the sleep."""
    Event().wait(seconds)


def _show(console: Console, name: str, lines: list[str], node: str | None = None) -> None:
    if console.is_table or lines:
        document = {"schema": SCHEMA, "node": node, "log": name, "lines": lines}
        console.show(document, lambda: lines, is_quoted=True)


def _newest_first(folder: Path) -> list[Path]:
    found = [path for path in folder.glob(f"*{SUFFIX}") if path.is_file()]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _meant(folder: Path, worker: str | None) -> Path:
    """Return the daemon's log, or the newest log whose name contains `worker`.

    Raises:
        NotFoundError: there is no such log.
    """
    found = _newest_first(folder)
    fitting = [path for path in found if worker is None or worker in path.stem]
    if worker is None:
        fitting = [path for path in found if path.name == DAEMON_LOG]
    if fitting:
        return fitting[0]
    if not found:
        raise NotFoundError(
            f"there is no log in {folder}", "start jupiterd, or name its folder with --state-dir"
        )
    names = ", ".join(path.stem for path in found[:SHOWN_NAMES])
    wanted = worker if worker is not None else DAEMON_NAME
    raise NotFoundError(
        f"no log here is called {wanted}", f"jupiterctl logs --list; such as {names}"
    )
