"""Removes curves of old runs: the newest stay on this node, and those of runs that still run.

Owns which folders go. Doesn't know what is in them, or when they are looked at (`retention`).
"""

import shutil
from collections.abc import Set as AbstractSet
from pathlib import Path

SAVED_RUNS = 20


def remove_old(curves: Path, running: AbstractSet[str], saved: int = SAVED_RUNS) -> list[str]:
    """Remove all but the newest folders; return the names of those that went.

    running: names of runs that may still write, and count as none of the newest
    """
    found = [path for path in _folders(curves) if path.name not in running]
    old = sorted(found, key=_written_s, reverse=True)[saved:]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
    return [folder.name for folder in old if not folder.exists()]


def _folders(curves: Path) -> list[Path]:
    try:
        return [path for path in curves.iterdir() if path.is_dir() and not path.is_symlink()]
    except OSError:  # nothing was ever trained here
        return []


def _written_s(folder: Path) -> float:
    """Return when anything in the folder was written last; an island's lies a folder deeper."""
    try:
        return max(path.lstat().st_mtime for path in [folder, *folder.rglob("*")])
    except OSError:  # it has gone meanwhile
        return 0.0
