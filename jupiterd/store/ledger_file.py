"""The ledger on disk: one SQLite file.

Owns keeping raw entries in the order they came, the snapshot that sums up those before them, the
roster entries beside it, and a few named values. Doesn't know what an entry says.

Nothing returns before the bytes are on the disk: a node acknowledges only what a power cut can't
take back.
"""

import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jupiterd.errors import CorruptLedgerError, DiskFullError, JupiterError, StateDirError

CLUSTER_KEY: Final = "cluster"
"""The named value that `replace` sets: the id of the cluster whose entries these are."""

_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = 1",  # macOS: a plain fsync leaves the bytes in the drive's own cache
    "PRAGMA checkpoint_fullfsync = 1",
)
_TABLES = (
    "CREATE TABLE entries (position INTEGER PRIMARY KEY, raw BLOB NOT NULL)",
    "CREATE TABLE snapshots (position INTEGER PRIMARY KEY, raw BLOB NOT NULL)",
    "CREATE TABLE roster (position INTEGER PRIMARY KEY, raw BLOB NOT NULL)",
    "CREATE TABLE named (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)
"""Of a new file; one of an older layout is brought to this by `migrations`."""
_IS_NEW = "SELECT count(*) = 0 FROM sqlite_schema"
_INSERT = "INSERT INTO entries (raw) VALUES (?)"
_INSERT_SNAPSHOT = "INSERT INTO snapshots (raw) VALUES (?)"
_INSERT_ROSTER = "INSERT INTO roster (raw) VALUES (?)"
_SET = "INSERT INTO named VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class LedgerFile:
    """Entries and named values that outlive the process; may be used from any thread.

    Every method raises DiskFullError, StateDirError (it can't be written) or CorruptLedgerError
    (the file is damaged).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._translated():
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._set_up()
        except JupiterError:
            self._database.close()
            raise

    def load(self) -> list[bytes]:
        """Return every entry in the order it was appended."""
        with self._lock, self._translated():
            rows = self._database.execute("SELECT raw FROM entries ORDER BY position")
            return [raw for (raw,) in rows]

    def load_snapshot(self) -> bytes | None:
        """Return what sums up the entries that are no longer here, or None where all are."""
        with self._lock, self._translated():
            row = self._database.execute("SELECT raw FROM snapshots").fetchone()
            return None if row is None else bytes(row[0])

    def load_roster(self) -> list[bytes]:
        """Return the entries that admit and remove, kept one by one beside the snapshot."""
        with self._lock, self._translated():
            rows = self._database.execute("SELECT raw FROM roster ORDER BY position")
            return [raw for (raw,) in rows]

    def append_roster(self, raws: Sequence[bytes]) -> None:
        """Add entries to those that are kept beside the snapshot."""
        with self._transaction():
            self._database.executemany(_INSERT_ROSTER, [(raw,) for raw in raws])

    def append(self, raws: Sequence[bytes]) -> None:
        """Add entries: all of them or, after a crash, none."""
        with self._transaction():
            self._database.executemany(_INSERT, [(raw,) for raw in raws])

    def compact(self, snapshot: bytes, raws: Sequence[bytes], roster: Sequence[bytes]) -> None:
        """Hold this snapshot and these entries in place of all there were."""
        with self._transaction():
            self._replace_all(snapshot, raws, roster)

    def get(self, key: str) -> str | None:
        """Return a named value, or None."""
        with self._lock, self._translated():
            row = self._database.execute("SELECT value FROM named WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

    def set(self, key: str, value: str) -> None:
        """Put a named value in place of the one before."""
        with self._transaction():
            self._database.execute(_SET, (key, value))

    def replace(
        self,
        cluster: str,
        raws: Sequence[bytes],
        snapshot: bytes | None = None,
        roster: Sequence[bytes] = (),
    ) -> None:
        """Hold another cluster's ledger instead; other named values stay as they are."""
        with self._transaction():
            self._replace_all(snapshot, raws, roster)
            self._database.execute(_SET, (CLUSTER_KEY, cluster))

    def close(self) -> None:
        """Let go of the file; idempotent."""
        with self._lock, self._translated():
            self._database.close()

    def _set_up(self) -> None:
        with self._translated():
            for statement in _SETTINGS:
                self._database.execute(statement)
        with self._transaction():
            (is_new,) = self._database.execute(_IS_NEW).fetchone()
            for statement in _TABLES if is_new else ():
                self._database.execute(statement)

    def _replace_all(
        self, snapshot: bytes | None, raws: Sequence[bytes], roster: Sequence[bytes]
    ) -> None:
        for table in ("entries", "snapshots", "roster"):
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
        if snapshot is not None:
            self._database.execute(_INSERT_SNAPSHOT, (snapshot,))
        self._database.executemany(_INSERT, [(raw,) for raw in raws])
        self._database.executemany(_INSERT_ROSTER, [(raw,) for raw in roster])

    @contextmanager
    def _transaction(self) -> Generator[None, None, None]:
        with self._lock, self._translated():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise DiskFullError(f"no room left for the ledger {self._path}") from error
            raise StateDirError(f"the ledger {self._path} can't be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise CorruptLedgerError(f"the ledger {self._path} is damaged: {error}") from error
