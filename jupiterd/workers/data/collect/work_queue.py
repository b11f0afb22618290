"""Work that survives kill -9: each item is done at least once, and its result kept exactly once.

Owns a SQLite file (WAL) with the items, who has leased which, and the results, and the lock of the
folder that a worker finds again after it was killed. Doesn't know what an item is. Any number of
processes of one machine may work on a queue at a time.

    put     an item is known by its key; one that was put before, done or not, stays as it is
    lease   the oldest items that nobody has leased, or whose lease has run out
    finish  the results and what follows from them (more items) in one transaction: whoever is
            killed before it has done nothing, and a second result for the same key is thrown away

A process that dies leaves its leases behind; they run out, or `release` gives all of them back
where one process alone works.
"""

import fcntl
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

LEASE_S = 600.0

_BUSY_S = 60.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    payload BLOB NOT NULL,
    leased_s REAL NOT NULL DEFAULT -1,
    tries INTEGER NOT NULL DEFAULT 0,
    is_done INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS open ON items (number) WHERE is_done = 0;
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
"""

# A lease from a time to come is one from before the machine was started: its clock began anew.
_LEASE = """
UPDATE items SET leased_s = :now, tries = tries + :begun WHERE number IN (
    SELECT number FROM items
    WHERE is_done = 0 AND (leased_s < 0 OR leased_s <= :now - :lease OR leased_s > :now)
    ORDER BY number LIMIT :count
) RETURNING number, key, payload, tries
"""

_TAKE = """
UPDATE items SET leased_s = :now, tries = tries + 1 WHERE key = :key
RETURNING key, payload, tries
"""


@dataclass(frozen=True)
class LeasedItem:
    """One piece of work, leased."""

    key: str
    payload: bytes
    tries: int
    """How often it has been begun, this time included."""


class WorkQueue:
    """A queue in a file; a context manager, and for one thread."""

    def __init__(
        self, path: Path, lease_s: float = LEASE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the file, or make it.

        Args:
            path: the file; SQLite puts others beside it.
            lease_s: how long an item is one worker's.
            clock: seconds, the same for all processes of this machine.
        """
        self._lease_s = lease_s
        self._clock = clock
        self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        # A crash of the machine may lose the newest results, never the file; they are done again.
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_SCHEMA)

    def put(self, items: Iterable[tuple[str, bytes]]) -> None:
        """Add items; those whose key is known already stay as they are."""
        with self._writing():
            self._insert(items)

    def lease(self, count: int, *, is_begun: bool = True) -> list[LeasedItem]:
        """Take up to so many items, oldest first; none where all are done or leased.

        Args:
            count: how many at the most.
            is_begun: it counts as a try. Where a worker begins them one after the other, it is
                `take` that counts: else those it never came to are tried whenever it is killed.
        """
        settings = {
            "now": self._clock(), "lease": self._lease_s, "count": count, "begun": is_begun
        }  # fmt: skip
        with self._writing():
            rows = self._database.execute(_LEASE, settings).fetchall()
        return [LeasedItem(key, payload, tries) for _, key, payload, tries in sorted(rows)]

    def take(self, key: str) -> LeasedItem:
        """Put and begin one item by its key, whoever had it; it mustn't be done already."""
        settings = {"now": self._clock(), "key": key}
        with self._writing():
            self._insert([(key, b"")])
            row = self._database.execute(_TAKE, settings).fetchone()
        return LeasedItem(*row)

    def finish(
        self, results: Iterable[tuple[str, bytes]], more: Iterable[tuple[str, bytes]] = ()
    ) -> None:
        """Keep the results of items that were leased, and add what follows from them."""
        found = list(results)
        with self._writing():
            self._database.executemany("INSERT OR IGNORE INTO results VALUES (?, ?)", found)
            self._database.executemany(
                "UPDATE items SET is_done = 1 WHERE key = ?", [(key,) for key, _ in found]
            )
            self._insert(more)

    def give_back(self, keys: Sequence[str]) -> None:
        """Let others have items that were leased and not begun; it doesn't count as a try."""
        with self._writing():
            self._database.executemany(
                "UPDATE items SET leased_s = -1, tries = tries - 1 WHERE key = ? AND is_done = 0",
                [(key,) for key in keys],
            )

    def release(self) -> None:
        """End every lease: whoever held one is gone."""
        with self._writing():
            self._database.execute("UPDATE items SET leased_s = -1 WHERE is_done = 0")

    def result(self, key: str) -> bytes | None:
        """Return what came of an item; None where it isn't done."""
        row = self._database.execute("SELECT value FROM results WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def results(self) -> Iterator[tuple[str, bytes]]:
        """Yield every key and result, in the order of the keys."""
        return iter(self._database.execute("SELECT key, value FROM results ORDER BY key"))

    def size(self) -> int:
        """Return how many items there are, at no cost: none is ever removed."""
        return self._database.execute("SELECT coalesce(max(number), 0) FROM items").fetchone()[0]

    def counts(self) -> tuple[int, int]:
        """Return how many items there are, and how many of them are done."""
        total, done = self._database.execute(
            "SELECT count(*), coalesce(sum(is_done), 0) FROM items"
        ).fetchone()
        return total, done

    @contextmanager
    def _writing(self) -> Generator[None]:
        """All or nothing, begun as a writer: two that both read first would wait for each other."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:  # a full disk ends it by itself
                self._database.execute("ROLLBACK")
            raise

    def _insert(self, items: Iterable[tuple[str, bytes]]) -> None:
        self._database.executemany(
            "INSERT OR IGNORE INTO items (key, payload) VALUES (?, ?)", items
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()


@contextmanager
def own_scratch(wanted: Path, output: Path) -> Generator[Path]:
    """Hold `wanted` for this process; where another one still holds it, begin anew elsewhere."""
    wanted.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (wanted / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = output / "scratch"
            other.mkdir(exist_ok=True)
            yield other
            return
        yield wanted
