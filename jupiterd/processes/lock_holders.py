"""Who truly holds a GPU's lock file: anybody may lock what everybody can read.

Owns reading that from the kernel, and when a lock counts: one of this user's own processes', or
that of a user whom the driver sees computing on the GPU, or who may still be about to. A lock goes
with the processes that inherit it, and the kernel names the one that took it: where that has ended,
whoever computes there is believed. Another user's lock on a GPU on which that user computes nothing
is nobody's. Doesn't know how locks are taken (`device_locks`).
"""

import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

BEGIN_S: Final = 60.0
"""What another user's worker gets for computing something: libraries are loaded for half of it."""

ASK_S: Final = 2.0
"""So long an answer of the driver is good: whoever waits for a GPU looks five times a second."""

_LOCKS: Final = Path("/proc/locks")

Computing = Callable[[str], frozenset[int] | None]


class LockHolders:
    """Whose locks count; remembers since when another user's one can't be believed."""

    def __init__(self, computing: Computing = lambda _uuid: None) -> None:
        """Take what tells the processes that compute on a GPU; None where nobody can tell."""
        self.computing = computing
        self._seen_users: dict[str, tuple[float, frozenset[int] | None]] = {}
        self._doubted: dict[int, float] = {}

    def free(self, descriptor: int) -> None:
        """Take note that nobody locks it: whoever does so next has all the time again."""
        self._doubted.pop(os.fstat(descriptor).st_ino, None)

    def holder(self, uuid: str, descriptor: int, signed: str) -> str:
        """Return who holds a file that is locked; empty where that is nobody who uses the GPU.

        Args:
            uuid: of the GPU.
            descriptor: of the file.
            signed: what is written there, which only its owner can have written.
        """
        if (lockers := _lockers(descriptor)) is None:
            return signed
        file, own = os.fstat(descriptor), os.geteuid()
        if own in lockers.values() or (not lockers and _is_open_in_own(descriptor)):
            return signed if file.st_uid == own else "another worker of this user"
        users = self._users(uuid)
        if users and not lockers and (others := users - {own}):
            # Who took it has ended, and its worker goes on: that one computes here.
            self.free(descriptor)
            return _left_behind(others, file.st_uid, signed)
        if users is None or users & {*lockers.values()}:
            self.free(descriptor)
            return _shown_holder(lockers, file.st_uid, signed)
        since_s = self._doubted.setdefault(file.st_ino, time.monotonic())
        is_young = time.monotonic() - since_s < BEGIN_S
        return _shown_holder(lockers, file.st_uid, signed) if is_young else ""

    def _users(self, uuid: str) -> frozenset[int] | None:
        """Return the users that compute on a GPU; None where that can't be told."""
        looked_s, pids = self._seen_users.get(uuid, (-ASK_S, None))
        if time.monotonic() - looked_s >= ASK_S:
            pids = self.computing(uuid)
            self._seen_users[uuid] = time.monotonic(), pids
        users = [_user(pid) for pid in pids] if pids is not None else [None]
        known = frozenset(user for user in users if user is not None)
        return known if len(known) == len(set(users)) else None


def _lockers(descriptor: int) -> dict[int, int] | None:
    """Return process -> user of whoever has locked a file; None where the system doesn't tell."""
    inode = f":{os.fstat(descriptor).st_ino}"
    try:
        rows = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:  # not Linux, or closed to us
        return None
    found = [row for row in rows if "FLOCK" in row and "->" not in row]
    pids = [int(row[4]) for row in found if len(row) > 5 and row[5].endswith(inode)]
    users = {pid: _user(pid) for pid in pids}
    return {pid: user for pid, user in users.items() if user is not None}


def _user(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _is_open_in_own(descriptor: int) -> bool:
    """Say whether a worker of ours has it, which may have outlived the daemon that locked it."""
    wanted, own = os.fstat(descriptor), os.getpid()
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == own:
            continue
        try:
            if process.stat().st_uid != os.geteuid():
                continue
            if any(_is_same(path, wanted) for path in (process / "fd").iterdir()):
                return True
        except OSError:  # it has ended meanwhile
            continue
    return False


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), wanted)
    except OSError:
        return False


def _shown_holder(lockers: dict[int, int], owner: int, signed: str) -> str:
    """Return who it is: as the kernel says, and in its own words where it has written the file."""
    if not lockers:
        return "a process that has ended"
    pid, user = next(iter(lockers.items()))
    name = _name(user)
    return f"{signed}, of user {name}" if user == owner else f"process {pid} of user {name}"


def _left_behind(users: frozenset[int], owner: int, signed: str) -> str:
    if owner in users:
        return f"{signed}, of user {_name(owner)}"
    return f"a worker of user {_name(min(users))}"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
