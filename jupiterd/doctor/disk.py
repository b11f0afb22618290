"""Is there enough space for the state folder, and is its file system suitable?

Owns reading the facts and the finding. Writes nothing.
"""

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, ok, warn
from jupiterd.formats import size

CHECK: Final = "disk"
LITTLE_BYTES: Final = 10 << 30
"""About what a 100m model's checkpoints and the shards of a few rounds need."""
NETWORK_KINDS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smbfs", "smb3", "9p", "fuse.sshfs", "afpfs"}
)
"""File systems on which SQLite's write-ahead log and locks aren't reliable."""


@dataclass(frozen=True)
class DiskReading:
    """The state folder and the disk below it."""

    folder: str
    free_bytes: int
    total_bytes: int
    kept_free_bytes: int
    kind: str = ""
    """The kind of the file system; empty: unknown."""
    is_writable: bool = True
    is_private: bool = True
    """Only its owner may read it."""


def read(machine: ExaminedMachine) -> DiskReading:
    """Return the facts about the folder; before it exists, about its nearest existing parent."""
    folder = _existing(machine.state_dir)
    usage = shutil.disk_usage(folder)
    mode = folder.stat().st_mode
    is_own = folder == machine.state_dir
    return DiskReading(
        folder=str(machine.state_dir),
        free_bytes=usage.free,
        total_bytes=usage.total,
        kept_free_bytes=machine.free_disk_bytes,
        kind=_kind(folder),
        is_writable=os.access(folder, os.W_OK | os.X_OK),
        is_private=not is_own or not mode & (stat.S_IRWXG | stat.S_IRWXO),
    )


def judge(reading: DiskReading) -> Finding:
    """Return the most serious finding."""
    free = f"{size(reading.free_bytes)} of {size(reading.total_bytes)} free at {reading.folder}"
    if not reading.is_writable:
        why = f"{reading.folder} can't be written by this user"
        return fail(CHECK, why, "choose another one: jupiterd --state-dir DIR")
    if reading.free_bytes <= reading.kept_free_bytes:
        why = f"{free}, and {size(reading.kept_free_bytes)} are to stay free: nothing is written"
        return fail(CHECK, why, "free some space, or lower free_disk_mib in jupiter.yaml")
    if reading.kind in NETWORK_KINDS:
        why = f"{reading.folder} lies on a network drive ({reading.kind}), where locks may fail"
        return warn(CHECK, why, "use a disk of this machine: jupiterd --state-dir DIR")
    if not reading.is_private:
        why = f"others on this machine may look into {reading.folder}, where the key lies"
        return warn(CHECK, why, f"chmod 700 {reading.folder}")
    if reading.free_bytes < LITTLE_BYTES:
        return warn(CHECK, f"only {free}", "free some space, or set store_gib in jupiter.yaml")
    return ok(CHECK, free)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _kind(folder: Path) -> str:
    """Return the kind of a folder's file system; empty: unknown."""
    parts = [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]
    holding = [(len(at), kind) for at, kind in parts if folder.resolve().is_relative_to(at)]
    return max(holding, default=(0, ""))[1]
