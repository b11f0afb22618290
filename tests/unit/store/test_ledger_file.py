import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupiterd.errors import CorruptLedgerError, DiskFullError, StateDirError
from jupiterd.store.ledger_file import CLUSTER_KEY, LedgerFile

CRASHING = """
import os, signal, sys
from pathlib import Path
from jupiterd.store.ledger_file import LedgerFile

def crash():
    os.kill(os.getpid(), signal.SIGKILL)

class Batch(list):
    def __iter__(self):
        yield b"lost"
        crash()

ledger = LedgerFile(Path(sys.argv[1]))
ledger.append([b"kept"])
if sys.argv[2] == "in a batch":
    ledger._database.execute("BEGIN IMMEDIATE")
    rows = ((raw,) for raw in Batch())
    ledger._database.executemany("INSERT INTO entries (raw) VALUES (?)", rows)
crash()
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[LedgerFile]:
    file = LedgerFile(tmp_path / "ledger.db")
    yield file
    file.close()


def test_entries_come_back_in_the_order_they_were_appended(
    ledger: LedgerFile, tmp_path: Path
) -> None:
    ledger.append([b"c", b"a"])
    ledger.append([])
    ledger.append([b"\x00\xff"])
    ledger.close()
    again = LedgerFile(tmp_path / "ledger.db")
    assert again.load() == [b"c", b"a", b"\x00\xff"]
    again.close()


def test_named_values_come_back_and_the_last_one_counts(ledger: LedgerFile) -> None:
    assert ledger.get("term") is None
    ledger.set("term", "4")
    ledger.set("term", "5")
    assert ledger.get("term") == "5"


def test_joining_another_cluster_drops_the_blank_ledger_and_keeps_the_term(
    ledger: LedgerFile,
) -> None:
    ledger.set(CLUSTER_KEY, "ours")
    ledger.set("term", "3")
    ledger.append([b"founded"])
    ledger.replace("theirs", [b"one", b"two"])
    assert ledger.load() == [b"one", b"two"]
    assert ledger.get(CLUSTER_KEY) == "theirs"
    assert ledger.get("term") == "3"


def test_roster_entries_lie_beside_the_snapshot_until_both_are_replaced(ledger: LedgerFile) -> None:
    ledger.compact(b"summed up", [b"newest"], [b"admission"])
    ledger.append_roster([b"removal"])
    assert ledger.load_roster() == [b"admission", b"removal"]
    assert (ledger.load_snapshot(), ledger.load()) == (b"summed up", [b"newest"])
    ledger.replace("theirs", [b"one"])
    assert ledger.load_roster() == []


def test_a_batch_that_fails_leaves_nothing_behind(ledger: LedgerFile) -> None:
    ledger.append([b"kept"])
    with pytest.raises(CorruptLedgerError):
        ledger.append([b"lost", None])  # pyright: ignore[reportArgumentType]
    with pytest.raises(CorruptLedgerError):
        ledger.replace("theirs", [None])  # pyright: ignore[reportArgumentType]
    assert ledger.load() == [b"kept"]
    assert ledger.get(CLUSTER_KEY) is None


@pytest.mark.parametrize("when", ["in a batch", "idle"])
def test_a_killed_process_loses_nothing_acknowledged_and_half_a_batch_entirely(
    tmp_path: Path, when: str
) -> None:
    path = tmp_path / "ledger.db"
    ended = subprocess.run([sys.executable, "-c", CRASHING, str(path), when], check=False)
    assert ended.returncode == -signal.SIGKILL
    ledger = LedgerFile(path)
    assert ledger.load() == [b"kept"]
    ledger.append([b"next"])
    ledger.close()


def test_it_syncs_every_commit(ledger: LedgerFile) -> None:
    def pragma(name: str) -> object:
        return ledger._database.execute(f"PRAGMA {name}").fetchone()[0]

    assert (pragma("journal_mode"), pragma("synchronous"), pragma("fullfsync")) == ("wal", 2, 1)


def test_several_threads_may_append_at_once(ledger: LedgerFile) -> None:
    def write(number: int) -> None:
        for index in range(10):
            ledger.append([b"%d.%d.a" % (number, index), b"%d.%d.b" % (number, index)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = ledger.load()
    assert len(set(entries)) == 80
    # No batch is torn apart by another thread's.
    assert all(entries[i][:-1] == entries[i + 1][:-1] for i in range(0, 80, 2))


def test_a_full_disk_is_called_that(ledger: LedgerFile) -> None:
    pages = ledger._database.execute("PRAGMA page_count").fetchone()[0]
    ledger._database.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(DiskFullError, match="no room left"):
        ledger.append([os.urandom(1 << 16)])
    assert ledger.load() == []


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(CorruptLedgerError, match=r"ledger\.db is damaged"):
        LedgerFile(path)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateDirError, match="can't be used"):
        LedgerFile(tmp_path / "absent" / "ledger.db")
