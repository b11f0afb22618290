"""How many processes Linux has killed for want of memory, as far as this one can see.

Owns where the kernel counts them: of the whole machine, and of our own control group. Doesn't know
processes. Whoever was killed between two counts, by SIGKILL, was most likely one of them: the
kernel names nobody to those who may not read its log.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

_VMSTAT: Final = Path("/proc/vmstat")
_OWN_GROUP: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")
_NAME: Final = "oom_kill"


def kills() -> int:
    """Return the count; it only grows. 0 where nobody counts, as on macOS."""
    return max((_count(file) for file in _files()), default=0)


def _files() -> Iterator[Path]:
    yield _VMSTAT
    for line in _read(_OWN_GROUP).splitlines():
        if line.startswith("0::/"):  # of version 2; the older ones count nothing
            yield _GROUPS / line.removeprefix("0::/") / "memory.events"


def _count(file: Path) -> int:
    fields = (line.split() for line in _read(file).splitlines())
    found = (field[1] for field in fields if len(field) == 2 and field[0] == _NAME)
    return next((int(number) for number in found if number.isdecimal()), 0)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
