"""Whether a folder may become, or still is, this user's state folder.

Owns who must have it, who may write into it, and what else may lie there. Doesn't know what a
daemon keeps in it. A folder that is there already is never given another mode: it is somebody's.
File systems without rights (exFAT, a drive of Windows) show every folder as open to all; one that a
daemon has made or used is taken again.
"""

import logging
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jupiterd.daemon.runtime.parent_folders import unsafe_parent, user_name
from jupiterd.errors import StateDirError
from jupiterd.store.layout import written_by

log = logging.getLogger(__name__)

_PRIVATE: Final = 0o700
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_SHOWN: Final = 3

OWN: Final = frozenset(
    {
        "key.pem",
        "certificate.pem",
        "lock",
        "store",
        "spool",
        "scratch",
        "runs",
        "logs",
        "peers.json",
        "events.json",
    }
    | {"asked_paths.json", "cycles.tsv", "control.sock", "question.sock", "ledger.db", "VERSION"}
    | {"ledger.db-wal", "ledger.db-shm", "VERSION.tmp", "migrating", "migrating.draft"}
)
"""What a daemon makes there: one that ended before it wrote VERSION has left some of it."""

BROUGHT: Final = frozenset({"cluster.yaml", "jupiter.yaml", "lost+found", ".DS_Store"})
"""What people put there first, and what a new disk or Finder does."""

_MARKS: Final = frozenset({"key.pem", "ledger.db", "store"})
"""Without any of them, a VERSION is another program's."""


@contextmanager
def claimed(root: Path) -> Generator[tuple[Path, int]]:
    """Make a state folder where it is missing; yield its real path and a descriptor of it.

    Raises:
        StateDirError: it is somebody else's, others may write into it, or it holds other things.
        OSError: it can't be made or opened.
    """
    real = _real(root)
    was_there = real.is_dir()
    real.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _require_own(root, descriptor)
        is_ours = was_there and _is_ours(real, _names(descriptor))
        if was_there and not is_ours:
            _require_free(root, descriptor)
        _require_safe_parents(root, real, is_ours=is_ours, was_there=was_there)
        yield real, descriptor
    finally:
        os.close(descriptor)


def _real(root: Path) -> Path:
    """Follow a link that this user, or the system, has made, and nobody else's."""
    if root.is_symlink() and root.lstat().st_uid not in (os.geteuid(), 0):
        owner = user_name(root.lstat().st_uid)
        raise StateDirError(f"the state folder {root} is a link that {owner} has made")
    return Path(os.path.realpath(root))  # a link that leads to itself can't be made, or opened


def _require_own(root: Path, descriptor: int) -> None:
    """Refuse another user's folder, and what another user has put into this one's."""
    own, owner = os.geteuid(), os.fstat(descriptor).st_uid
    if owner != own:
        raise StateDirError(
            f"the state folder {root} belongs to {user_name(owner)}, and jupiterd runs as "
            f"{user_name(own)}",
            "run jupiterd as its owner, or choose another folder with --state-dir",
        )
    for name in _names(descriptor):
        owner = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_uid
        if owner not in (own, 0):
            raise StateDirError(f"{root / name} in the state folder belongs to {user_name(owner)}")


def _require_safe_parents(root: Path, real: Path, *, is_ours: bool, was_there: bool) -> None:
    """Refuse a new folder that others could put another in the place of; of an older one say so."""
    found = unsafe_parent(real)
    if found is None:
        return
    why, fix = found
    if is_ours:
        log.warning("state_folder_unsafe", extra={"folder": str(root), "reason": why})
        return
    if not was_there:
        real.rmdir()
    raise StateDirError(
        f"somebody else could put another folder in the place of {root}: {why}",
        f"choose another folder with --state-dir, or: {fix}",
    )


def _is_ours(root: Path, names: Iterable[str]) -> bool:
    """Say whether a daemon has stored its state here before."""
    return not _MARKS.isdisjoint(names) and written_by(root) is not None


def _require_free(root: Path, descriptor: int) -> None:
    """Refuse a folder that others could change, or that serves for something else."""
    if os.fstat(descriptor).st_mode & _OTHERS_WRITE:
        raise StateDirError(
            f"others on this machine may write into the state folder {root}",
            f"chmod 700 {root}, or choose another folder with --state-dir",
        )
    others = sorted(set(_names(descriptor)) - OWN - BROUGHT)
    if others:
        shown = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
        raise StateDirError(
            f"the folder {root} holds other things ({shown}), so it is no state folder",
            f"choose an empty or a new one, such as --state-dir {root / 'jupiter'}",
        )


def _names(descriptor: int) -> list[str]:
    """Return what lies in the folder that was opened, whatever its path means by now."""
    return os.listdir(descriptor)
