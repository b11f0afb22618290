"""The folder that belongs to one daemon.

Owns its parts, its permissions and its lock. Doesn't know what is written into them, or how a
folder of an older program is brought up to date (`store.layout`).
"""

import fcntl
import os
import shutil
import stat
from pathlib import Path
from typing import Self

from jupiterd import __version__
from jupiterd.daemon.runtime.folder_claim import claimed
from jupiterd.errors import StateDirError
from jupiterd.locations import (
    CONTROL_SOCKET,
    CURVES,
    LOCK,
    QUESTION_SOCKET,
    ROUND_TABLE,
    SERVE_SOCKET,
)
from jupiterd.store.layout import bring_up_to_date

MAX_GRAPH_BYTES = 4 << 30
"""A graph of a model takes some 10 to 100 MB."""


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
        self.graphs = root / "graphs"
        """What torch's compiler has made for this machine, for workers that come later."""
        self.engines = root / "engines"
        """Models as engines read them that answer requests, made where one is asked for."""
        self.runs = root / "runs"
        self.logs = root / "logs"
        self.curves = root / CURVES
        self.peers = root / "peers.json"
        self.events = root / "events.json"
        self.compile_times = root / "compile_times.json"
        self.micro_batches = root / "micro_batches.json"
        self.requested_paths = root / "asked_paths.json"
        self.round_table = root / ROUND_TABLE
        self.control_socket = root / CONTROL_SOCKET
        self.question_socket = root / QUESTION_SOCKET
        self.serve_socket = root / SERVE_SOCKET

    @classmethod
    def open(cls, root: Path) -> Self:
        """Make the folder where it is missing, take its lock and bring its layout up to date.

        Raises:
            StateDirError: it can't be written, is somebody else's, holds other things, or another
                daemon holds it.
            NewerStateError: a newer Jupiter wrote it; nothing in it is touched then.
            DiskFullError: there is no room to bring it up to date.
            CorruptLedgerError: its ledger is damaged, and of an older layout.
        """
        try:
            with claimed(root) as (real, folder):
                lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=folder)
                state = cls(real, lock)
            try:
                state._take_lock()
                bring_up_to_date(state.root, __version__)
                state._lock()
                for folder in state._folders():
                    folder.mkdir(exist_ok=True, mode=0o700)
            except BaseException:
                state.close()
                raise
        except OSError as error:
            is_file = isinstance(error, FileExistsError)
            reason = "it is a file" if is_file else error.strerror or str(error)
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

    def empty_large_graphs(self, most_bytes: int = MAX_GRAPH_BYTES) -> None:
        """Throw all compiled graphs away where they take more than that: workers make new ones."""
        if sum(map(_size_bytes, self.graphs.rglob("*"))) > most_bytes:
            shutil.rmtree(self.graphs, ignore_errors=True)
            self.graphs.mkdir(exist_ok=True, mode=0o700)

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._lock_fd)

    def _folders(self) -> tuple[Path, ...]:
        return self.store, self.spool, self.scratch, self.graphs, self.runs, self.logs

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = (self.root / LOCK).read_text() or "unknown"
            raise StateDirError(
                f"the state folder {self.root} is held by a running jupiterd (process {holder})",
                "stop it first, or choose another folder with --state-dir",
            ) from error

    def _lock(self) -> None:
        """Name the process that holds it."""
        os.truncate(self._lock_fd, 0)
        os.write(self._lock_fd, str(os.getpid()).encode())


def holder_of(root: Path) -> str:
    """Return the process whose daemon has a state folder now; empty where none has it."""
    try:
        lock = os.open(root / LOCK, os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return (root / LOCK).read_text() or "unknown"
    finally:
        os.close(lock)
    return ""


def _size_bytes(path: Path) -> int:
    """Return a file's size; nothing of a folder, or of what a worker has removed meanwhile."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
