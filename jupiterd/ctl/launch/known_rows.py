"""Rows for the launches that this machine knows: those started here, and parts of others.

Owns the rows, for people and for programs. Doesn't print them.
"""

import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.formats import duration, plain, table
from jupiterd.processes.scripts.events import Over
from jupiterd.processes.scripts.machine_share import MachineShare, ShareDescription, parts_in
from jupiterd.processes.scripts.record import Launch, LaunchRecord, records_in

HEADERS: Final = ("ID", "STATE", "AGE", "WHERE", "RANKS", "COMMAND")
EMPTY: Final = "nothing was launched here in the last days"
MAX_COMMAND: Final = 60

STOPPED: Final = frozenset(128 + each for each in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM))
"""Exit statuses of a launch that was stopped by a signal, also by a closed terminal."""


@dataclass(frozen=True)
class KnownLaunch:
    """One launch that was started here, or this machine's part of another one."""

    folder: Path
    record: LaunchRecord | None
    launch: Launch | None
    part: MachineShare | None
    description: ShareDescription | None

    @property
    def id(self) -> str:
        """Return the id of the launch."""
        return self.folder.name.partition(".")[0]

    @property
    def is_alive(self) -> bool:
        """Return whether the launch, or its part on this machine, still runs."""
        holder = self.record or self.part
        return holder is not None and holder.is_alive

    @property
    def pid(self) -> int:
        """Return the process id of the launch; 0 if it was started on another machine."""
        return self.launch.pid if self.launch is not None else 0

    @property
    def command(self) -> str:
        """Return the command as it would be typed."""
        record = self.launch or self.description
        return plain(shlex.join(record.argv)) if record is not None else "unknown"


def found_in(state_dir: Path) -> list[KnownLaunch]:
    """Return the launches in a state folder: first those started here, then parts of others."""
    launches = [KnownLaunch(r.folder, r, r.read(), None, None) for r in records_in(state_dir)]
    parts = [KnownLaunch(p.folder, None, None, p, p.describe()) for p in parts_in(state_dir)]
    typed = [each for each in launches if each.launch is not None]
    return [*typed, *(each for each in parts if each.description is not None)]


def row_of(known: KnownLaunch) -> dict[str, Any]:
    """Return the launch as a row of a document."""
    launch, description = known.launch, known.description
    record = launch or description
    is_alive = known.is_alive
    over = known.part.over if known.part is not None and not is_alive else None
    return {
        "id": known.id,
        "state": "running" if is_alive else _ended_state(known.launch, over),
        "command": list(record.argv) if record is not None else [],
        "folder": record.folder if record is not None else "",
        "nodes": list(launch.nodes) if launch is not None else [],
        "from": description.owner_name if description is not None else None,
        "ranks": launch.processes if launch else len(description.ranks) if description else 0,
        "restarts": launch.restarts if launch is not None else 0,
        "detached": launch.is_detached if launch is not None else False,
        "began_s": record.began_s if record is not None else 0.0,
        "ended_s": launch.ended_s if launch is not None else None,
        "status": launch.status if launch is not None else None,
        "words": launch.words if launch is not None else over.reason if over else "",
    }


def table_of(rows: Sequence[dict[str, Any]], now_s: float) -> list[str]:
    """Return the lines of the table, or one line if it is empty."""
    return table(HEADERS, [_cells(row, now_s) for row in rows]) if rows else [EMPTY]


def _cells(row: dict[str, Any], now_s: float) -> list[object]:
    where = f"here, for {row['from']}" if row["from"] else ", ".join(row["nodes"]) or "here"
    command = shlex.join(row["command"])
    shown = command if len(command) <= MAX_COMMAND else command[: MAX_COMMAND - 1] + "…"
    age = duration(max(0.0, now_s - row["began_s"]))
    return [row["id"], row["state"], age, plain(where), row["ranks"], plain(shown)]


def _ended_state(launch: Launch | None, over: Over | None) -> str:
    """Return a word for how the launch ended, with its exit status if it isn't 0."""
    if launch is not None:
        status = launch.status
        if status is None:
            return "killed"
        how = "stopped" if status in STOPPED else "failed"
        return f"{how} ({status})" if status else "done"
    return "ended" if over is not None else "killed"
