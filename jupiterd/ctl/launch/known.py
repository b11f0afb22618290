"""`jupiterctl launch list|logs|stop`: launches that were started here, and parts that run here.

Owns these commands. They read the state folder and need no daemon. Doesn't know how a launch runs.
"""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.launch.known_rows import KnownLaunch, found_in, row_of, table_of
from jupiterd.ctl.launch.rank_output import RankOutput
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, TimedOutError
from jupiterd.processes.scripts.event_log import EventReader
from jupiterd.processes.scripts.events import (
    Ended,
    Ending,
    Notice,
    Over,
    Printed,
    ScriptEvent,
    Skipped,
)
from jupiterd.protocol.frames import ConnectionsRefused

LOOK_S: Final = 0.1
STOP_TIMEOUT_S: Final = 20.0


@click.command("list", cls=GlobalOptionsCommand)
@click.pass_obj
def list_launches(invocation: Invocation) -> None:
    """List the launches that were typed on this machine, and the parts of others that run here.

    Those that have ended stay listed for some days.

    \b
    Examples:
      jupiterctl launch list
      jupiterctl launch list -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    rows = [row_of(each) for each in found_in(invocation.state_dir)]
    document = {"schema": SCHEMA, "launches": rows}
    now_s = _now_s()
    Console.of(invocation).show_list(document, "launches", lambda: table_of(rows, now_s))


@click.command("logs", cls=GlobalOptionsCommand)
@click.option("-f", "--follow", is_flag=True, help="Go on until the launch ends.")
@click.option("--rank", type=int, multiple=True, metavar="N", help="Of this rank; may be repeated.")
@click.argument("launch", default="")
@click.pass_obj
def logs(
    invocation: Invocation,
    follow: bool,  # noqa: FBT001 - click's way
    rank: tuple[int, ...],
    launch: str,
) -> None:
    """Show what the ranks of a LAUNCH have printed; of the last one by default.

    \b
    Examples:
      jupiterctl launch logs -f 3f9a1c
      jupiterctl launch logs 3f9a1c --rank 1
    """  # noqa: D301 - click's mark for lines that keep their ends
    known = _the_one(invocation.state_dir, launch)
    console = Console.of(invocation)
    output = RankOutput(lambda line, _: _write(console, line), shown=rank or None)
    with suppress(KeyboardInterrupt):
        asyncio.run(_show(known, output, console, is_followed=follow))


@click.command("stop", cls=GlobalOptionsCommand)
@click.argument("launch")
@dry_run
@click.pass_obj
def stop(invocation: Invocation, launch: str) -> None:
    """End a LAUNCH on all its machines, as Ctrl-C does where it was typed.

    Of one that was typed elsewhere it ends the part that runs here; the others end with it.

    \b
    Examples:
      jupiterctl launch stop 3f9a1c
      jupiterctl launch stop 3f9a1c --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    known = _the_one(invocation.state_dir, launch)
    console = Console.of(invocation)
    if not known.is_alive:
        document = {"schema": SCHEMA, "launch": row_of(known)}
        console.show(document, lambda: [f"launch {known.id} has ended already"])
        return
    if invocation.is_dry_run:
        document = {"schema": SCHEMA, "launch": row_of(known)}
        console.show(document, lambda: [f"would end launch {known.id} ({known.command})"])
        return
    console.require_consent(f"end launch {known.id} ({known.command})?", invocation)
    asyncio.run(_stop(known))
    document = {"schema": SCHEMA, "launch": row_of(known)}
    console.show(document, lambda: [f"launch {known.id} has ended"])


def _the_one(state_dir: Path, launch: str) -> KnownLaunch:
    """Return the launch whose id begins with a text; if the text is empty, the last one.

    A launch that was restarted has a part for each attempt here: the one that runs is returned.

    Raises:
        NotFoundError: there is none, or there are several.
    """
    known = found_in(state_dir)
    meant = [each for each in known if each.id == launch]
    meant = meant or [each for each in known if each.id.startswith(launch)]
    ids = {each.id for each in meant}
    if not meant or (launch and len(ids) > 1):
        number = "several launches" if meant else "no launch"
        said = f"{number} whose id begins with {launch}" if launch else "no launch is known here"
        raise NotFoundError(said, "jupiterctl launch list shows them")
    tries = [each for each in meant if each.id == meant[0].id]
    return next((each for each in tries if each.is_alive), tries[0])


async def _show(
    known: KnownLaunch, output: RankOutput, console: Console, *, is_followed: bool
) -> None:
    reader = EventReader(known.folder)
    while True:
        was_alive = known.is_alive
        before = reader.offset
        for event in reader.read():
            _take(event, output, console)
            if isinstance(event, Over):
                return
        if reader.offset != before:
            continue
        if not was_alive or not is_followed:
            return
        await asyncio.sleep(LOOK_S)


def _take(event: ScriptEvent, output: RankOutput, console: Console) -> None:
    match event:
        case Printed(rank, is_error, data):
            output.take(rank, data, is_error=is_error)
        case Ended(rank, _):
            output.finish(rank)
        case Skipped(size_bytes):
            console.notice(f"{size_bytes:,} bytes before this aren't kept any more")
        case Ending(reason):
            console.notice(f"its ranks are ended: {reason}")
        case Notice(words):
            console.notice(words)
        case Over() | ConnectionsRefused():
            pass


async def _stop(known: KnownLaunch) -> None:
    """End the launch and wait until it has ended.

    Raises:
        TimedOutError: it hasn't ended within STOP_TIMEOUT_S.
    """
    if known.part is not None:
        known.part.send("end", "its machine's owner ended it")
    elif known.pid:
        with suppress(ProcessLookupError):
            os.kill(known.pid, signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            while known.is_alive:  # noqa: ASYNC110 - only its lock shows its end
                await asyncio.sleep(LOOK_S)
    except TimeoutError as error:
        raise TimedOutError(
            f"launch {known.id} was asked to end, and hasn't yet",
            f"ask again, which ends it at once: jupiterctl launch stop {known.id}",
        ) from error


def _write(console: Console, line: bytes) -> None:
    console.line(line.decode("utf-8", "replace").rstrip("\n"), is_quoted=True)


def _now_s() -> float:
    return time.time()  # noqa: TID251 - for the age of a launch
