"""The record of a launch on the machine where it was typed, while it runs and for a while after.

Owns the files in its folder, and the description. Doesn't know how a launch runs. The process that
runs it holds the lock and appends the ranks' output. The folder outlives that process and the
daemon, so that users can list, read and stop the launch from any terminal of the machine.

    launch.json   what runs, where, and how it ended
    lock          held by the process that runs it
    events.*      the events of all ranks (`event_log`)
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
"""Folder inside the state folder, with a folder for each launch that was typed here."""

MOST_ENDED: Final = 32
ENDED_TTL_S: Final = 7 * 24 * 3600.0
"""At most `MOST_ENDED` ended launches are kept, for this long in s."""

_DESCRIPTION: Final = "launch.json"
_LOCK: Final = "lock"


@dataclass(frozen=True)
class Launch:
    """The description of a launch."""

    id: str
    argv: tuple[str, ...]
    folder: str
    nodes: tuple[str, ...]
    """Names of the machines; empty: only the one where it was typed."""
    processes: int
    pid: int
    """Process id of the process that runs it."""
    is_detached: bool
    began_s: float
    """Unix time in s, like `ended_s`."""
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
        """Return whether the process that runs it lives."""
        return is_locked(self.folder / _LOCK)

    @property
    def changed_s(self) -> float:
        """Return when its description was last written, in Unix time; 0 if it can't be read."""
        with contextlib.suppress(OSError):
            return (self.folder / _DESCRIPTION).stat().st_mtime
        return 0.0

    def hold(self) -> int:
        """Create the folder and take its lock; closing the returned descriptor releases it.

        Raises:
            OSError: the folder can't be created, or exists already.
        """
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700)
        return take_lock(self.folder / _LOCK)

    def write(self, launch: Launch) -> None:
        """Write the description atomically; on a full disk the old one stays."""
        with contextlib.suppress(OSError):
            draft = self.folder / f"{_DESCRIPTION}.draft"
            draft.write_text(json.dumps(asdict(launch)), encoding="utf-8")
            draft.replace(self.folder / _DESCRIPTION)

    def read(self) -> Launch | None:
        """Return the description; None if it can't be read."""
        try:
            return _launch(json.loads((self.folder / _DESCRIPTION).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def end(self, status: int, words: str, now_s: float) -> None:
        """Add to the description how it ended."""
        if launch := self.read():
            self.write(replace(launch, status=status, words=words, ended_s=now_s))


def records_in(state_dir: Path) -> list[LaunchRecord]:
    """Return the launches in a state folder, the newest first."""
    with contextlib.suppress(OSError):
        found = [LaunchRecord(f) for f in (state_dir / LAUNCHES).iterdir() if ID.fullmatch(f.name)]
        return sorted(found, key=lambda record: record.changed_s, reverse=True)
    return []


def forget_old_records(records: Iterable[LaunchRecord], now_s: float) -> None:
    """Delete ended launches beyond `MOST_ENDED` or older than `ENDED_TTL_S`."""
    ended = [record for record in records if not record.is_alive]
    for number, record in enumerate(ended):
        if number >= MOST_ENDED or now_s - record.changed_s > ENDED_TTL_S:
            shutil.rmtree(record.folder, ignore_errors=True)


def is_launching(state_dir: Path, id_: str) -> bool:
    """Return whether the process lives that runs the launch of this part or order."""
    return LaunchRecord(state_dir / LAUNCHES / id_.partition(".")[0]).is_alive


def can_record(state_dir: Path) -> bool:
    """Return whether the state folder exists and this user may write to it."""
    return os.access(state_dir, os.W_OK | os.X_OK)


def _launch(plain: Mapping[str, Any]) -> Launch:
    fields: dict[str, Any] = {**plain, "argv": tuple(plain["argv"]), "nodes": tuple(plain["nodes"])}
    return Launch(**fields)
