"""Finds out who holds a GPU's lock file, and whether that lock counts.

Owns reading holders from the kernel, and the rule. Anybody may lock a file that everybody can read.
A lock counts if a process of this user holds it, or a user whom the driver sees computing on the
GPU, or any user if the driver can't tell, or another user for the first `BEGIN_S`. Processes
inherit a lock, but the kernel names only the one that took it: if that one has ended, the lock is
attributed to another user who computes on the GPU. Any other lock doesn't count. Doesn't know how
locks are taken (`device_locks`).
"""

import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

BEGIN_S: Final = 60.0
"""How long another user's worker has to start computing, in s: loading libraries takes up to half
of it."""

ASK_S: Final = 2.0
"""How long an answer of the driver is reused, in s: a process that waits for a GPU checks five
times a second."""

_LOCKS: Final = Path("/proc/locks")

Computing = Callable[[str], frozenset[int] | None]


class LockHolders:
    """Decides whose locks count; remembers since when it doubts another user's lock."""

    def __init__(self, computing: Computing = lambda _uuid: None) -> None:
        """`computing`: GPU's UUID -> the ids of processes that compute there; None if unknown."""
        self.computing = computing
        self._seen_users: dict[str, tuple[float, frozenset[int] | None]] = {}
        self._doubted: dict[int, float] = {}

    def free(self, descriptor: int) -> None:
        """Forget the doubt about this file: its next holder has the full `BEGIN_S` again."""
        self._doubted.pop(os.fstat(descriptor).st_ino, None)

    def holder(self, uuid: str, descriptor: int, signed: str) -> str:
        """Return who holds a locked file; empty if the holder doesn't use the GPU.

        Args:
            uuid: of the GPU.
            descriptor: of the file.
            signed: the file's text, which only its owner can have written.
        """
        if (lockers := _lockers(descriptor)) is None:
            return signed
        file, own = os.fstat(descriptor), os.geteuid()
        if own in lockers.values() or (not lockers and _is_open_in_own(descriptor)):
            return signed if file.st_uid == own else "another worker of this user"
        users = self._users(uuid)
        if users and not lockers and (others := users - {own}):
            # The process that took the lock has ended; its worker inherited it and computes here.
            self.free(descriptor)
            return _left_behind(others, file.st_uid, signed)
        if users is None or users & {*lockers.values()}:
            self.free(descriptor)
            return _shown_holder(lockers, file.st_uid, signed)
        since_s = self._doubted.setdefault(file.st_ino, time.monotonic())
        is_young = time.monotonic() - since_s < BEGIN_S
        return _shown_holder(lockers, file.st_uid, signed) if is_young else ""

    def _users(self, uuid: str) -> frozenset[int] | None:
        """Return the users that compute on a GPU; None if that is unknown."""
        looked_s, pids = self._seen_users.get(uuid, (-ASK_S, None))
        if time.monotonic() - looked_s >= ASK_S:
            pids = self.computing(uuid)
            self._seen_users[uuid] = time.monotonic(), pids
        users = [_user(pid) for pid in pids] if pids is not None else [None]
        known = frozenset(user for user in users if user is not None)
        return known if len(known) == len(set(users)) else None


def _lockers(descriptor: int) -> dict[int, int] | None:
    """Return process -> user of those that locked a file; None if the system doesn't tell."""
    inode = f":{os.fstat(descriptor).st_ino}"
    try:
        rows = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:  # not Linux, or not readable
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
    """Return whether another process of this user has it open: a worker may outlive its daemon."""
    wanted, own = os.fstat(descriptor), os.getpid()
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == own:
            continue
        try:
            if process.stat().st_uid != os.geteuid():
                continue
            if any(_is_same(path, wanted) for path in (process / "fd").iterdir()):
                return True
        except OSError:  # the process has ended meanwhile
            continue
    return False


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), wanted)
    except OSError:
        return False


def _shown_holder(lockers: dict[int, int], owner: int, signed: str) -> str:
    """Describe the holder: by the kernel's answer, and by the file's text if the holder owns it."""
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
