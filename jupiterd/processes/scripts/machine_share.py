"""One machine's part of a launched script, as it lies on disk while it runs and for a while after.

Owns the names in its folder, who keeps it, and what its keeper is told. Doesn't know how the ranks
run (`keeper`), or who asks for them. The folder outlives every daemon, so one that starts again
finds what runs.

    part.json     whose it is, and what runs
    lock          held by the keeper for as long as it lives
    commands      a pipe with a name: lines for the keeper
    events.*      what the ranks print and how they end (`event_log`)
    over.json     how it ended
    keeper.log    what the keeper itself has to complain of
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.processes.scripts.event_log import EventReader, segments
from jupiterd.processes.scripts.events import Over

PARTS: Final = Path("scripts")
"""Inside the state folder: a folder for each part that runs here for another machine."""

ID: Final = re.compile(r"[a-z0-9]{1,16}(\.[0-9]{1,6})?")

MOST_ENDED: Final = 16
ENDED_TTL_S: Final = 24 * 3600.0
"""So many parts that have ended are kept, and for so long: their output can still be asked for."""

_DESCRIPTION: Final = "part.json"
_LOCK: Final = "lock"
_COMMANDS: Final = "commands"
_OVER: Final = "over.json"
KEEPER_LOG: Final = "keeper.log"


@dataclass(frozen=True)
class ShareDescription:
    """What is told of a part without asking its keeper."""

    owner: str
    """The node that ordered it."""
    owner_name: str
    argv: tuple[str, ...]
    folder: str
    ranks: tuple[int, ...]
    began_s: float
    """Unix time."""


class MachineShare:
    """A part's folder; it may run, or have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def id(self) -> str:
        """Return the id of the order that it carries out."""
        return self.folder.name

    @property
    def is_alive(self) -> bool:
        """Say whether its keeper lives."""
        return is_locked(self.folder / _LOCK)

    @property
    def over(self) -> Over | None:
        """Return how it ended; None where it hasn't, or its keeper was killed."""
        try:
            reason, code, hint = json.loads((self.folder / _OVER).read_bytes())
            return Over(str(reason), str(code), str(hint))
        except (OSError, ValueError, TypeError):
            return self._last_event()

    def write_over(self, over: Over) -> None:
        """Write down how it ended, where it is found without reading all that was printed."""
        with contextlib.suppress(OSError):
            text = json.dumps([over.reason, over.code, over.hint])
            (self.folder / _OVER).write_text(text, encoding="utf-8")

    def _last_event(self) -> Over | None:
        """Return the end that the log tells, where nothing else does: it is in the last segment."""
        reader, found = EventReader(self.folder, max(segments(self.folder), default=0)), None
        before = -1
        while reader.offset != before:
            before = reader.offset
            for event in reader.read():
                found = event if isinstance(event, Over) else found
        return found

    def make(self, description: ShareDescription) -> None:
        """Make the folder and what is in it before the keeper starts.

        Raises:
            FileExistsError: it is there already.
        """
        self.folder.mkdir(mode=0o700, parents=True)
        text = json.dumps(asdict(description))
        (self.folder / _DESCRIPTION).write_text(text, encoding="utf-8")
        os.mkfifo(self.folder / _COMMANDS, 0o600)

    def describe(self) -> ShareDescription | None:
        """Return what is told of it; None where that can't be read."""
        try:
            return _description(json.loads((self.folder / _DESCRIPTION).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def lock(self) -> int:
        """Take the lock, for the keeper; return its descriptor, which holds it until closed."""
        return take_lock(self.folder / _LOCK)

    def open_commands(self) -> int:
        """Return where the keeper reads what it is told; held for writing too, so it never ends."""
        return os.open(self.folder / _COMMANDS, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def send(self, *words: object) -> None:
        """Tell the keeper something, if it lives."""
        line = " ".join(map(str, words)).encode() + b"\n"
        with contextlib.suppress(OSError):  # nobody reads, or has not read for long
            path = self.folder / _COMMANDS
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                    os.write(pipe, line)
            finally:
                os.close(pipe)

    def remove(self) -> None:
        """Throw it away."""
        shutil.rmtree(self.folder, ignore_errors=True)


def parts_in(state_dir: Path) -> list[MachineShare]:
    """Return the parts of a state folder, the last one that began first."""
    with contextlib.suppress(OSError):
        folders = [f for f in (state_dir / PARTS).iterdir() if ID.fullmatch(f.name)]
        return [MachineShare(f) for f in sorted(folders, key=_changed, reverse=True)]
    return []


def forget_old(parts: Iterable[MachineShare], now_s: float) -> None:
    """Throw away what has ended, but for the last few of the last day."""
    ended = [part for part in parts if not part.is_alive]
    for number, part in enumerate(ended):
        if number >= MOST_ENDED or now_s - _changed(part.folder) > ENDED_TTL_S:
            part.remove()


def is_locked(path: Path) -> bool:
    """Say whether somebody holds the lock; no file counts as no lock.

    One that another user made, and we may not look at, counts as held: nothing is ended by guess.
    """
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def take_lock(path: Path) -> int:
    """Hold a lock until the descriptor that is returned is closed, or the process ends."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _description(fields: Mapping[str, Any]) -> ShareDescription:
    return ShareDescription(
        str(fields["owner"]),
        str(fields["owner_name"]),
        tuple(map(str, fields["argv"])),
        str(fields["folder"]),
        tuple(map(int, fields["ranks"])),
        float(fields["began_s"]),
    )


def _changed(folder: Path) -> float:
    with contextlib.suppress(OSError):
        return (folder / _DESCRIPTION).stat().st_mtime
    return 0.0
