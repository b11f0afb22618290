"""One machine's part of a launched script on disk, while it runs and for a while after.

Owns the files in its folder, the lock, and the commands to its keeper. Doesn't know how the ranks
run (`script_supervisor`), or who asks for them. The folder outlives every daemon, so that a daemon
that starts again finds the running part.

    part.json     who ordered it, and what runs
    lock          held by the keeper as long as it lives
    commands      a named pipe: lines for the keeper
    events.*      the ranks' output and ends (`event_log`)
    over.json     how it ended
    keeper.log    the keeper's own errors
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
"""Folder inside the state folder; it has a folder for each part that runs here."""

ID: Final = re.compile(r"[a-z0-9]{1,16}(\.[0-9]{1,6})?")

MOST_ENDED: Final = 16
ENDED_TTL_S: Final = 24 * 3600.0
"""At most `MOST_ENDED` ended parts are kept, for this long in s, so that users can read their
output."""

_DESCRIPTION: Final = "part.json"
_LOCK: Final = "lock"
_COMMANDS: Final = "commands"
_OVER: Final = "over.json"
KEEPER_LOG: Final = "keeper.log"


@dataclass(frozen=True)
class ShareDescription:
    """A description of a part that needs no answer from its keeper."""

    owner: str
    """The node that ordered it."""
    owner_name: str
    argv: tuple[str, ...]
    folder: str
    ranks: tuple[int, ...]
    began_s: float
    """Unix time."""


class MachineShare:
    """A part's folder; the part may be running or have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def id(self) -> str:
        """Return the id of its order."""
        return self.folder.name

    @property
    def is_alive(self) -> bool:
        """Return whether its keeper lives."""
        return is_locked(self.folder / _LOCK)

    @property
    def over(self) -> Over | None:
        """Return how it ended; None if it hasn't, or its keeper was killed."""
        try:
            reason, code, hint = json.loads((self.folder / _OVER).read_bytes())
            return Over(str(reason), str(code), str(hint))
        except (OSError, ValueError, TypeError):
            return self._last_event()

    def write_over(self, over: Over) -> None:
        """Write how it ended, so that a reader needn't search the whole log."""
        with contextlib.suppress(OSError):
            text = json.dumps([over.reason, over.code, over.hint])
            (self.folder / _OVER).write_text(text, encoding="utf-8")

    def _last_event(self) -> Over | None:
        """Return the `Over` event of the log's last segment, if over.json is missing."""
        reader, found = EventReader(self.folder, max(segments(self.folder), default=0)), None
        before = -1
        while reader.offset != before:
            before = reader.offset
            for event in reader.read():
                found = event if isinstance(event, Over) else found
        return found

    def make(self, description: ShareDescription) -> None:
        """Create the folder and its files before the keeper starts.

        Raises:
            FileExistsError: the folder exists already.
        """
        self.folder.mkdir(mode=0o700, parents=True)
        text = json.dumps(asdict(description))
        (self.folder / _DESCRIPTION).write_text(text, encoding="utf-8")
        os.mkfifo(self.folder / _COMMANDS, 0o600)

    def describe(self) -> ShareDescription | None:
        """Return its description; None if it can't be read."""
        try:
            return _description(json.loads((self.folder / _DESCRIPTION).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def lock(self) -> int:
        """Take the lock, for the keeper; return the descriptor that holds it until closed."""
        return take_lock(self.folder / _LOCK)

    def open_commands(self) -> int:
        """Open the keeper's end of the pipe; it is open for writing too, so that it never ends."""
        return os.open(self.folder / _COMMANDS, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def send(self, *words: object) -> None:
        """Send a command to the keeper, if it lives."""
        line = " ".join(map(str, words)).encode() + b"\n"
        with contextlib.suppress(OSError):  # no reader, or the pipe is full
            path = self.folder / _COMMANDS
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                    os.write(pipe, line)
            finally:
                os.close(pipe)

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def parts_in(state_dir: Path) -> list[MachineShare]:
    """Return the parts in a state folder, the newest first."""
    with contextlib.suppress(OSError):
        folders = [f for f in (state_dir / PARTS).iterdir() if ID.fullmatch(f.name)]
        return [MachineShare(f) for f in sorted(folders, key=_changed, reverse=True)]
    return []


def forget_old(parts: Iterable[MachineShare], now_s: float) -> None:
    """Delete ended parts beyond `MOST_ENDED` or older than `ENDED_TTL_S`."""
    ended = [part for part in parts if not part.is_alive]
    for number, part in enumerate(ended):
        if number >= MOST_ENDED or now_s - _changed(part.folder) > ENDED_TTL_S:
            part.remove()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock; False if the file doesn't exist.

    A file of another user that we may not read counts as locked, so that nothing is ended by guess.
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
    """Take a lock; closing the returned descriptor, or the process's end, releases it."""
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
