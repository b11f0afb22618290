"""What has changed in the layout of state folders, and how an older one becomes the next.

Owns the table. Doesn't know when migrations run, or how one is made to happen whole (`layout`).

A migration is handed a folder with copies of the files that it names (those that are there), and
changes these. `store/` and `runs/` hold files that never change, and no migration copies them; what
workers have left in `scratch/` is thrown away before each.
"""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Migration:
    """From one layout to the next."""

    words: str
    """What it does, for the log."""
    files: tuple[str, ...]
    """Names of what it changes, in the state folder itself."""
    run: Callable[[Path], None]


def _one_form_of_ledger(draft: Path) -> None:
    """Programs of layout 1 added what they missed by themselves, whenever they opened the file."""
    path = draft / "ledger.db"
    if not path.exists():
        return
    with _changing(path) as database:
        for table in ("entries", "snapshots", "roster"):
            columns = "position INTEGER PRIMARY KEY, raw BLOB NOT NULL"
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        database.execute(
            "CREATE TABLE IF NOT EXISTS named"
            " (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
        )
        # `term/epoch`: the leader that was obeyed wasn't written down at first.
        database.execute(
            "UPDATE named SET value = value || '/'"
            " WHERE key = 'obeyed' AND value LIKE '%/%' AND value NOT LIKE '%/%/%'"
        )


MIGRATIONS: Final = (
    Migration(
        "the ledger has all of its tables, and what was obeyed says whose it was",
        ("ledger.db",),
        _one_form_of_ledger,
    ),
)
"""The first brings layout 1 to 2, and so on."""


@contextmanager
def _changing(path: Path) -> Generator[sqlite3.Connection]:
    """Change a database in one transaction, and leave it in one file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database
        database.execute("COMMIT")
        database.execute("PRAGMA journal_mode = DELETE")
