"""The control groups that Linux keeps this process in, and what they let it have.

Owns where they are, of both versions, also in containers, and their files. A limit counts wherever
it is set on the way up to the root: a group has no more than those that it lies in. Elsewhere there
are none. Doesn't know the machine (`memory_limits`, `processor_limits`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_OWN_GROUPS: Final = Path("/proc/self/cgroup")
_MOUNTS: Final = Path("/proc/self/mountinfo")

MEMORY: Final = "memory"
CPU: Final = "cpu"

NO_LIMIT_BYTES: Final = 1 << 60
"""Version 1 writes a number of about 2^63 where there is no limit."""

_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class _Mount:
    is_version_2: bool
    options: frozenset[str]
    """Of version 1, which controllers it has."""
    root: str
    """The group that lies at `point`; a container sees its own there."""
    point: Path


def own_groups(controller: str) -> Iterator[Path]:
    """Yield the folder of each group that this process is in and that may have that controller."""
    yield from (folder for folder, _ in _own_groups(controller))


def _own_groups(controller: str) -> Iterator[tuple[Path, Path]]:
    """Yield them, each with where the root of its hierarchy is to be seen."""
    mounts = _mounts()
    for line in _read(_OWN_GROUPS).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        for mount in mounts:
            is_its = controller in mount.options if controllers else mount.is_version_2
            if is_its and path:
                yield _folder(mount, path), mount.point
                break


def memory_limit_bytes() -> int | None:
    """Return how much memory this process and its children may have; None: as much as there is."""
    return min((limit for _, limit in _memory_limits()), default=None)


def free_memory_bytes() -> int | None:
    """Return how much of that is left, counting what the system only keeps files in.

    None where there is no limit.
    """
    free = [
        limit - used + _files_bytes(group)
        for group, limit in _memory_limits()
        if (used := _number(group, "memory.current", "memory.usage_in_bytes")) is not None
    ]
    return max(0, min(free)) if free else None


def processors() -> float | None:
    """Return for how many processors' time there is a quota; None: there is none."""
    quotas = (_quota(group) for group in _limiting(CPU))
    return min((quota for quota in quotas if quota is not None), default=None)


def _memory_limits() -> Iterator[tuple[Path, int]]:
    """Yield each group that has a limit; above `memory.high` a process hardly gets on."""
    for group in _limiting(MEMORY):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            limit = _number(group, name)
            if limit is not None and limit < NO_LIMIT_BYTES:
                yield group, limit


def _files_bytes(group: Path) -> int:
    rows = {
        name.removeprefix("total_"): number  # of version 1: with those of groups below
        for line in _read(group / "memory.stat").splitlines()
        for name, _, number in [line.partition(" ")]
    }
    found = (rows.get(name, "") for name in ("active_file", "inactive_file"))
    return sum(int(number) for number in found if number.isdecimal())


def _quota(group: Path) -> float | None:
    quota, _, period = _read(group / "cpu.max").strip().partition(" ")
    if not quota:
        quota = _read(group / "cpu.cfs_quota_us").strip()
        period = _read(group / "cpu.cfs_period_us").strip()
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None  # `max`, or -1
    return int(quota) / int(period)


def _number(group: Path, *names: str) -> int | None:
    found = (_read(group / name).strip() for name in names)
    return next((int(number) for number in found if number.isdecimal()), None)


def _mounts() -> list[_Mount]:
    """Return where groups are to be seen, version 1 first."""
    found = [_mount(line) for line in _read(_MOUNTS).splitlines() if " cgroup" in line]
    return sorted(filter(None, found), key=lambda mount: mount.is_version_2)


def _mount(line: str) -> _Mount | None:
    """Read a line such as `35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`."""
    place, _, kind = line.partition(" - ")
    places, kinds = place.split(), kind.split()
    if len(places) < 5 or len(kinds) < 3 or kinds[0] not in {"cgroup", "cgroup2"}:
        return None
    root, point = (_ESCAPED.sub(lambda code: chr(int(code[1], 8)), text) for text in places[3:5])
    return _Mount(kinds[0] == "cgroup2", frozenset(kinds[2].split(",")), root, Path(point))


def _folder(mount: _Mount, path: str) -> Path:
    """Return where a group is to be seen; in a container it is what lies at the mount point."""
    root = mount.root.rstrip("/")
    if path == root or path.startswith(f"{root}/"):
        folder = mount.point / path[len(root) :].lstrip("/")
        if ".." not in folder.parts and folder.is_dir():
            return folder
    return mount.point


def _limiting(controller: str) -> Iterator[Path]:
    """Yield each group that may limit this process: its own, and all that it lies in."""
    for folder, top in _own_groups(controller):
        yield folder
        yield from (above for above in folder.parents if above.is_relative_to(top))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
