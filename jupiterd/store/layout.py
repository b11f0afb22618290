"""The layout of a state folder: its number, and bringing an older one up to date.

Owns the file VERSION and that a migration happens whole or not at all, whenever the power goes.
Doesn't know what any migration does (`migrations`), or who holds the folder's lock.

    VERSION            `2 (jupiterd 0.2.0)`: the layout, and the program that started here last
    migrating.draft/   what a migration is writing, on copies; thrown away at the next start
    migrating/         what it has written: put in place by this start or by the next one

One number stands for the whole folder: SQLite's own version numbers aren't used. Renaming the draft
is what decides; VERSION is put in place before the rest, so that an older program, which doesn't
know of this, refuses a folder of which one half is new.
"""

import logging
import re
import shutil
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.errors import CorruptLedgerError, DiskFullError, NewerStateError, StateDirError
from jupiterd.store.disk import sync_file, sync_folder, written
from jupiterd.store.migrations import MIGRATIONS, Migration

log = logging.getLogger(__name__)

LAYOUT: Final = 1 + len(MIGRATIONS)
"""The layout that this program reads and writes."""

VERSION: Final = "VERSION"
DRAFT: Final = "migrating.draft"
READY: Final = "migrating"
SCRATCH: Final = "scratch"

_LEDGER: Final = "ledger.db"
_DATABASE: Final = ".db"
_TAILS: Final = ("-wal", "-shm")
"""Of the files that SQLite keeps beside a database."""
_FORM: Final = re.compile(r"(\d{1,9})(?: \(jupiterd ([^()\s]{1,64})\))?\s*")


@dataclass(frozen=True)
class WrittenBy:
    """What VERSION says."""

    layout: int
    program: str = ""
    """The version that started here last; empty where it didn't say so."""

    def __str__(self) -> str:
        return f"{self.layout} (jupiterd {self.program})\n"


def written_by(root: Path) -> WrittenBy | None:
    """Return who wrote a state folder; None where nobody has.

    Raises:
        StateDirError: VERSION says something else.
    """
    ready = root / READY / VERSION
    path = ready if ready.exists() else root / VERSION
    text = path.read_text(errors="replace") if path.exists() else ""
    if not text.strip():
        # The first layout's programs didn't bring it to the disk before the ledger.
        return WrittenBy(1) if (root / _LEDGER).exists() else None
    found = _FORM.fullmatch(text)
    if found is None or found[1] == "0":
        raise StateDirError(
            f"{path} doesn't say which layout the folder has",
            "choose another folder with --state-dir, or take this one from a backup",
        )
    return WrittenBy(int(found[1]), found[2] or "")


def bring_up_to_date(
    root: Path, program: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Finish or undo what was interrupted, migrate, and note who starts here; under the lock.

    Args:
        root: the state folder.
        program: our version.
        migrations: the one at n brings layout n + 1 to n + 2.

    Raises:
        NewerStateError: a newer program wrote it; nothing is touched.
        StateDirError: it can't be read or written.
        DiskFullError: there is no room for the copies.
        CorruptLedgerError: a database is damaged.
    """
    before, newest = written_by(root), 1 + len(migrations)
    if before is not None and before.layout > newest:
        raise _newer(root, before, program, newest)
    with _translated(root):
        shutil.rmtree(root / DRAFT, ignore_errors=True)
        _put_in_place(root)
        layout = newest if before is None else before.layout
        for migration in migrations[layout - 1 :]:
            _draft(root, migration, WrittenBy(layout + 1, program))
            (root / DRAFT).rename(root / READY)
            sync_folder(root)
            _put_in_place(root)
            extra = {"layout": layout + 1, "before": layout, "reason": migration.words}
            log.info("state_migrated", extra=extra)
            layout += 1
        _note(root, WrittenBy(newest, program))


def _draft(root: Path, migration: Migration, written_then: WrittenBy) -> None:
    """Make what the migration changes, beside what is there."""
    shutil.rmtree(root / SCRATCH, ignore_errors=True)  # what is half done is begun anew
    draft = root / DRAFT
    draft.mkdir(mode=0o700)
    for name in migration.files:
        if (root / name).exists():
            _copy(root / name, draft / name)
    migration.run(draft)
    (draft / VERSION).write_text(str(written_then))
    for path in draft.iterdir():
        sync_file(path)
    sync_folder(draft)


def _copy(place: Path, copy: Path) -> None:
    if place.suffix != _DATABASE:
        shutil.copy2(place, copy)
        return
    with closing(sqlite3.connect(place)) as whole, closing(sqlite3.connect(copy)) as target:
        whole.backup(target)  # with what is still in the write-ahead log
    copy.chmod(place.stat().st_mode & 0o777)


def _put_in_place(root: Path) -> None:
    """Put what a migration has made where it belongs, as far as that isn't done yet."""
    ready = root / READY
    if not ready.exists():
        return
    names = sorted(
        (path.name for path in ready.iterdir()), key=lambda name: (name != VERSION, name)
    )
    for name in names:
        for tail in _TAILS:  # an old log would be played into the new file
            (root / (name + tail)).unlink(missing_ok=True)
        sync_folder(root)
        (ready / name).replace(root / name)
        sync_folder(root)
    ready.rmdir()
    sync_folder(root)


def _note(root: Path, now: WrittenBy) -> None:
    place, draft = root / VERSION, root / f"{VERSION}.tmp"
    if place.exists() and place.read_text(errors="replace") == str(now):
        return
    draft.write_text(str(now))
    sync_file(draft)
    draft.replace(place)
    sync_folder(root)


def _newer(root: Path, before: WrittenBy, program: str, newest: int) -> NewerStateError:
    writer = f"jupiterd {before.program}" if before.program else "a newer jupiterd"
    return NewerStateError(
        f"the state folder {root} has layout {before.layout}, written by {writer}; "
        f"this is jupiterd {program}, which knows layouts up to {newest}",
        f"start {writer} or a later one, or choose another folder with --state-dir; "
        "nothing was changed",
    )


@contextmanager
def _translated(root: Path) -> Generator[None]:
    try:
        with written():
            yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise DiskFullError(f"no room left to bring {root} up to date") from error
        raise StateDirError(
            f"the state folder {root} can't be brought up to date: {error}"
        ) from error
    except sqlite3.DatabaseError as error:
        raise CorruptLedgerError(
            f"the state folder {root} can't be brought up to date: {error}",
            "start with a new state folder and join again: jupiterd --state-dir DIR",
        ) from error
