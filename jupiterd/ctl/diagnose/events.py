"""`jupiterctl events`: shows the events that the local daemon has seen in the cluster."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from threading import Event
from typing import Any

import click

from jupiterd.cluster.values.severity import LEVELS, rank
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import DaemonUnreachableError, TimedOutError
from jupiterd.formats import plain

LOOK_S = 1.0
BEFORE = "what was before is in: jupiterctl logs"

Row = Mapping[str, Any]


@click.command(cls=GlobalOptionsCommand)
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=50, show_default=True, help="How many."
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default=LEVELS[0],
    help="Leave out what matters less; info is everything.",
)
@click.pass_obj
def command(invocation: Invocation, *, follow: bool, lines: int, level: str) -> None:
    """Show what happened in the cluster, as the daemon of this machine saw it.

    Machines that joined, went and came back, leaders, roles, phases, gangs, verdicts, warnings. It
    reaches back 500 events, over restarts of the daemon, too; other machines may have seen more.

    \b
    Examples:
      jupiterctl events -f
      jupiterctl events --level warning -n 20
      jupiterctl events -o json | jq -r '.events[].text'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    console = Console.of(invocation)
    document = ask(invocation.state_dir, "events")
    last = _last(document)
    known = [row for row in document["events"] if _matters(row, level)]
    if not known and console.is_table:
        console.notice(f"nothing since {_local_time(document['since'])}; {BEFORE}")
    _show(console, document, known[-lines:] if lines else [])
    is_away = False
    while follow:
        pause(LOOK_S)
        try:
            document = ask(invocation.state_dir, "events")
        except (DaemonUnreachableError, TimedOutError) as error:
            if not is_away:
                console.notice(f"{error.message}; what comes is shown once it answers")
            is_away = True
            continue
        is_away = False
        new = [row for row in new_rows(document, last) if _matters(row, level)]
        last = _last(document)
        if new:
            _show(console, document, new)


def pause(seconds: float) -> None:
    """Sleep for `seconds`; Ctrl-C ends the sleep."""
    Event().wait(seconds)


def new_rows(document: Row, last: tuple[str, int]) -> list[Row]:
    """Return the events after `last`; all of them if the daemon's record has started again."""
    since, seq = last
    is_same = document["since"] == since
    return [row for row in document["events"] if not is_same or row["seq"] > seq]


def event_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each event, in local time."""
    for row in rows:
        yield f"{_local_time(row['at'])}  {plain(row['level']):<8}{plain(row['text'])}"


def _local_time(at: object) -> str:
    return f"{datetime.fromisoformat(str(at)).astimezone():%Y-%m-%d %H:%M:%S}"


def _last(document: Row) -> tuple[str, int]:
    return document["since"], max((row["seq"] for row in document["events"]), default=0)


def _matters(row: Row, level: str) -> bool:
    return rank(row["level"]) >= rank(level)


def _show(console: Console, document: Row, rows: Sequence[Row]) -> None:
    shown = {"schema": SCHEMA, "since": document["since"], "events": list(rows)}
    console.show_list(shown, "events", lambda: list(event_lines(rows)))
