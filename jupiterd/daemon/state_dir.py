"""The folder that belongs to one daemon.

Owns its layout, its permissions and its lock. Doesn't know what is written into the parts.
"""

import fcntl
import os
import shutil
from pathlib import Path
from typing import Self

from jupiterd.errors import StateDirError
from jupiterd.locations import CONTROL_SOCKET, CURVES, LOCK, QUESTION_SOCKET, ROUND_TABLE

SCHEMA = 1
"""The layout's number, in the file VERSION."""


class StateDir:
    """An opened and locked state folder; the lock goes with the process."""

    def __init__(self, root: Path, lock_fd: int) -> None:
        self.root = root
        self._lock_fd = lock_fd
        self.key = root / "key.pem"
        self.ledger = root / "ledger.db"
        self.store = root / "store"
        self.spool = root / "spool"
        self.scratch = root / "scratch"
        self.runs = root / "runs"
        self.logs = root / "logs"
        self.curves = root / CURVES
        self.peers = root / "peers.json"
        self.round_table = root / ROUND_TABLE
        self.control_socket = root / CONTROL_SOCKET
        self.question_socket = root / QUESTION_SOCKET

    @classmethod
    def open(cls, root: Path) -> Self:
        """Make the folder where it is missing, check its version and take its lock.

        Raises:
            StateDirError: it can't be written, another daemon holds it, or a newer Jupiter made it.
        """
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            root.chmod(0o700)
            state = cls(root.resolve(), os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o600))
            try:
                state._take_lock()
                state._check_version()
                for folder in (state.store, state.spool, state.scratch, state.runs, state.logs):
                    folder.mkdir(exist_ok=True, mode=0o700)
            except BaseException:
                state.close()
                raise
        except OSError as error:
            reason = error.strerror or str(error)
            raise StateDirError(f"the state folder {root} can't be written: {reason}") from error
        return state

    def enter(self) -> None:
        """Make it the process's working folder.

        Sockets are bound in it by relative paths, because unix sockets refuse long ones.
        """
        os.chdir(self.root)

    def empty_spool(self) -> None:
        """Throw away what a daemon that was killed left half done."""
        for left in self.spool.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._lock_fd)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = (self.root / LOCK).read_text() or "unknown"
            raise StateDirError(
                f"the state folder {self.root} is held by a running jupiterd (process {holder})",
                "stop it first, or choose another folder with --state-dir",
            ) from error
        os.truncate(self._lock_fd, 0)
        os.write(self._lock_fd, str(os.getpid()).encode())

    def _check_version(self) -> None:
        version = self.root / "VERSION"
        if not version.exists():
            version.write_text(f"{SCHEMA}\n")
        elif version.read_text().strip() != str(SCHEMA):
            raise StateDirError(
                f"the state folder {self.root} has layout {version.read_text().strip()}, "
                f"and this Jupiter knows layout {SCHEMA}",
                "use the Jupiter that made it, or choose another folder with --state-dir",
            )
