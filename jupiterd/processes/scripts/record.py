"""One launch, as the machine where it was typed remembers it while it runs and for a while after.

Owns the names in its folder, and what is told of it. Doesn't know how a launch is run. Whoever runs
it holds the lock, and appends what the ranks print; the folder outlives both, so that it can be
listed, read and stopped from anywhere on the machine, with or without a daemon.

    launch.json   what runs, where, and how it ended
    lock          held by the process that runs it
    events.*      what was heard of all ranks (`event_log`)
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from jupiterd.processes.scripts.machine_share import ID, is_locked, take_lock

LAUNCHES: Final = Path("launches")
"""Inside the state folder: a folder for each launch that was typed here."""

MOST_ENDED: Final = 32
ENDED_TTL_S: Final = 7 * 24 * 3600.0
"""So many launches that have ended are remembered, and for so long."""

_DESCRIPTION: Final = "launch.json"
_LOCK: Final = "lock"


@dataclass(frozen=True)
class Launch:
    """What is told of a launch."""

    id: str
    argv: tuple[str, ...]
    folder: str
    nodes: tuple[str, ...]
    """Names of the machines; empty for the one where it was typed, alone."""
    processes: int
    pid: int
    """Of the process that runs it."""
    is_detached: bool
    began_s: float
    """Unix time, as the end is."""
    ended_s: float | None = None
    status: int | None = None
    words: str = ""
    """Why it failed or was stopped."""
    restarts: int = 0


class LaunchRecord:
    """The folder of one launch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def id(self) -> str:
        """Return the launch's id."""
        return self.folder.name

    @property
    def is_alive(self) -> bool:
        """Say whether the process that runs it lives."""
        return is_locked(self.folder / _LOCK)

    @property
    def changed_s(self) -> float:
        """Return when it was last written down, in Unix time."""
        with contextlib.suppress(OSError):
            return (self.folder / _DESCRIPTION).stat().st_mtime
        return 0.0

    def hold(self) -> int:
        """Make the folder, and take its lock for as long as the descriptor is open.

        Raises:
            OSError: it can't be made, or is there already.
        """
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700)
        return take_lock(self.folder / _LOCK)

    def write(self, launch: Launch) -> None:
        """Write down what is told of it; what a full disk refuses is left as it was."""
        with contextlib.suppress(OSError):
            draft = self.folder / f"{_DESCRIPTION}.draft"
            draft.write_text(json.dumps(asdict(launch)), encoding="utf-8")
            draft.replace(self.folder / _DESCRIPTION)

    def read(self) -> Launch | None:
        """Return what is told of it; None where that can't be read."""
        try:
            return _launch(json.loads((self.folder / _DESCRIPTION).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def end(self, status: int, words: str, now_s: float) -> None:
        """Write down how it ended."""
        if launch := self.read():
            self.write(replace(launch, status=status, words=words, ended_s=now_s))


def records_in(state_dir: Path) -> list[LaunchRecord]:
    """Return the launches of a state folder, the newest first."""
    with contextlib.suppress(OSError):
        found = [LaunchRecord(f) for f in (state_dir / LAUNCHES).iterdir() if ID.fullmatch(f.name)]
        return sorted(found, key=lambda record: record.changed_s, reverse=True)
    return []


def forget_old_records(records: Iterable[LaunchRecord], now_s: float) -> None:
    """Throw away what has ended, but for the last ones of the last days."""
    ended = [record for record in records if not record.is_alive]
    for number, record in enumerate(ended):
        if number >= MOST_ENDED or now_s - record.changed_s > ENDED_TTL_S:
            shutil.rmtree(record.folder, ignore_errors=True)


def is_launching(state_dir: Path, id_: str) -> bool:
    """Say whether the process lives that runs the launch to which a part or an order belongs."""
    return LaunchRecord(state_dir / LAUNCHES / id_.partition(".")[0]).is_alive


def can_record(state_dir: Path) -> bool:
    """Say whether a state folder is there, and ours to write."""
    return os.access(state_dir, os.W_OK | os.X_OK)


def _launch(plain: Mapping[str, Any]) -> Launch:
    fields: dict[str, Any] = {**plain, "argv": tuple(plain["argv"]), "nodes": tuple(plain["nodes"])}
    return Launch(**fields)
