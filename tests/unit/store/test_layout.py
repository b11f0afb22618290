"""A state folder of an older program becomes one of this program's, whole or not at all."""

import json
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from jupiterd.errors import CorruptLedgerError, DiskFullError, NewerStateError, StateDirError
from jupiterd.store.layout import LAYOUT, WrittenBy, bring_up_to_date, written_by
from jupiterd.store.ledger_file import LedgerFile
from jupiterd.store.migrations import MIGRATIONS, Migration

FIRST_TABLES = """
CREATE TABLE entries (position INTEGER PRIMARY KEY, raw BLOB NOT NULL);
CREATE TABLE named (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO entries (raw) VALUES ('one'), ('two');
INSERT INTO named VALUES ('cluster', 'ours'), ('obeyed', '3/4'), ('term', '5');
"""
"""As the first commits of layout 1 made them: without snapshots, and without whom was obeyed."""

Rows = list[tuple[str, bytes]]

STRUCK = """
import json, os, shutil, signal, sys
from pathlib import Path
from jupiterd.store.layout import bring_up_to_date
import sqlite3

origin, root = Path(sys.argv[1]), Path(sys.argv[2])
FILES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect", "os.listdir"}

def killed_at(number):
    seen = [0]
    def count(event, arguments):
        if event in FILES:
            seen[0] += 1
            if seen[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)

def run(number):
    child = os.fork()
    if child == 0:
        if number:
            killed_at(number)
        bring_up_to_date(root, "2.0.0")
        os._exit(0)
    return os.waitpid(child, 0)[1]

def contents():
    database = sqlite3.connect(root / "ledger.db")
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema ORDER BY name")]
    named = dict(database.execute("SELECT * FROM named"))
    entries = [str(row[0]) for row in database.execute("SELECT raw FROM entries ORDER BY position")]
    integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
    database.close()
    return [(root / "VERSION").read_text(), tables, named, entries, integrity,
            sorted(path.name for path in root.iterdir())]

killed, found, halves = 0, [], []
for number in range(1, 1000):
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(origin, root)
    status = run(number)
    if status == 0:
        break
    killed += 1
    is_new = b"TABLE roster" in (root / "ledger.db").read_bytes()
    halves.append([(root / "VERSION").read_text(), is_new])
    assert run(0) == 0
    found.append(contents())
print(json.dumps({"killed": killed, "found": found, "halves": halves, "last": contents()}))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of layout 1, whose daemon was killed: its newest entry is in the WAL."""
    root = tmp_path / "state"
    root.mkdir()
    (root / "VERSION").write_text("1\n")
    (root / "key.pem").write_text("the key")
    for folder in ("store", "runs", "scratch"):
        (root / folder).mkdir()
        (root / folder / "kept").write_text(folder)
    command = (
        "import os, sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('PRAGMA journal_mode = WAL'); d.executescript(sys.argv[2]);"
        "d.execute('INSERT INTO entries (raw) VALUES (?)', (b'newest',)); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", command, root / "ledger.db", FIRST_TABLES], check=True)
    assert (root / "ledger.db-wal").stat().st_size > 0
    return root


def test_a_new_folder_gets_the_newest_layout(tmp_path: Path) -> None:
    bring_up_to_date(tmp_path, "1.2.3")
    assert (tmp_path / "VERSION").read_text() == f"{LAYOUT} (jupiterd 1.2.3)\n"
    assert written_by(tmp_path) == WrittenBy(LAYOUT, "1.2.3")


def test_the_first_ledgers_are_brought_up_to_date(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bring_up_to_date(root, "2.0.0")
    ledger = LedgerFile(root / "ledger.db")
    assert [str(raw) for raw in ledger.load()] == ["one", "two", str(b"newest")]
    assert (ledger.load_snapshot(), ledger.load_roster()) == (None, [])
    assert (ledger.get("cluster"), ledger.get("obeyed")) == ("ours", "3/4/")
    ledger.close()
    assert (root / "key.pem").read_text() == "the key"
    assert (root / "store" / "kept").read_text() == "store"
    assert not (root / "scratch").exists()
    assert [record.message for record in caplog.records] == ["state_migrated"]


def test_a_folder_that_is_up_to_date_is_only_noted(root: Path) -> None:
    bring_up_to_date(root, "2.0.0")
    (root / "scratch").mkdir()
    before = (root / "ledger.db").stat()
    bring_up_to_date(root, "2.0.1")
    assert (root / "ledger.db").stat() == before
    assert written_by(root) == WrittenBy(LAYOUT, "2.0.1")
    assert (root / "scratch").exists()


def test_a_migration_that_is_killed_anywhere_is_finished_or_undone_by_the_next_start(
    root: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", STRUCK, str(root), str(tmp_path / "struck")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    assert told["killed"] > 15
    assert all(found == told["last"] for found in told["found"])
    version, tables, named, entries, integrity, files = told["last"]
    assert version == f"{LAYOUT} (jupiterd 2.0.0)\n"
    assert {"entries", "named", "roster", "snapshots"} <= set(tables)
    assert (named["obeyed"], entries, integrity) == ("3/4/", ["one", "two", "b'newest'"], "ok")
    assert files == ["VERSION", "key.pem", "ledger.db", "runs", "store"]
    halves = {(noted, is_new) for noted, is_new in told["halves"]}
    # Some are undone and some finished; never does an older program find a newer ledger.
    assert halves == {("1\n", False), (version, False), (version, True)}


def test_what_was_decided_and_not_put_in_place_yet_is_refused_by_older_programs(
    root: Path,
) -> None:
    (root / "migrating").mkdir()
    (root / "migrating" / "VERSION").write_text("7 (jupiterd 5.0.0)\n")
    with pytest.raises(NewerStateError, match=r"layout 7, written by jupiterd 5\.0\.0"):
        bring_up_to_date(root, "2.0.0")
    assert (root / "VERSION").read_text() == "1\n"


@pytest.mark.parametrize("text", ["", "\n", None])
def test_a_version_that_a_power_cut_has_emptied_is_that_of_the_first_layout(
    root: Path, text: str | None
) -> None:
    (root / "VERSION").unlink() if text is None else (root / "VERSION").write_text(text)
    assert written_by(root) == WrittenBy(1)
    bring_up_to_date(root, "2.0.0")
    assert written_by(root) == WrittenBy(LAYOUT, "2.0.0")


@pytest.mark.parametrize("text", ["two", "0", "-1", "2 or so", "2 (jupiterd )", "9" * 5000])
def test_a_version_that_says_something_else_is_refused(root: Path, text: str) -> None:
    (root / "VERSION").write_text(text)
    with pytest.raises(StateDirError, match="doesn't say which layout"):
        bring_up_to_date(root, "2.0.0")
    assert (root / "VERSION").read_text() == text


def test_migrations_are_taken_one_after_another_and_each_counts(root: Path) -> None:
    def fails(draft: Path) -> None:
        (draft / "peers.json").write_text("half")
        raise OSError(28, "No space left on device")

    def adds(draft: Path) -> None:
        (draft / "peers.json").write_text(written_by_draft(draft))

    def written_by_draft(draft: Path) -> str:
        return ",".join(sorted(path.name for path in draft.iterdir()))

    table = _with(adds, fails)
    with pytest.raises(DiskFullError):
        bring_up_to_date(root, "9.0.0", table)
    assert written_by(root) == WrittenBy(len(MIGRATIONS) + 2, "9.0.0")
    assert (root / "peers.json").read_text() == "ledger.db"
    bring_up_to_date(root, "9.0.1", _with(adds, lambda _: None))
    assert written_by(root) == WrittenBy(len(MIGRATIONS) + 3, "9.0.1")
    assert (root / "peers.json").read_text() == "ledger.db"


def test_a_damaged_ledger_is_told_and_left_as_it_is(root: Path) -> None:
    (root / "ledger.db-wal").unlink()
    (root / "ledger.db").write_bytes(b"not a database at all" * 1000)
    with pytest.raises(CorruptLedgerError, match="can't be brought up to date"):
        bring_up_to_date(root, "2.0.0")
    assert (root / "VERSION").read_text() == "1\n"


def test_every_table_of_a_new_ledger_is_there_after_the_migrations(
    root: Path, tmp_path: Path
) -> None:
    LedgerFile(tmp_path / "new.db").close()
    bring_up_to_date(root, "2.0.0")
    assert _tables(root / "ledger.db") == _tables(tmp_path / "new.db")


def _with(*more: Callable[[Path], None]) -> tuple[Migration, ...]:
    return (*MIGRATIONS, *(Migration("another", ("ledger.db",), run) for run in more))


def _tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_schema")]
        return {
            name: database.execute(f"PRAGMA table_info({name})").fetchall()
            for name in sorted(names)
            if not name.startswith("sqlite_")
        }
