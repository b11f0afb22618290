"""Whether Linux has killed a process for want of memory, and how sure that is.

Owns where the kernel says so: its count of our own control group, in which workers are, too; its
log, where we may read it; and its count of the whole machine, which leaves a doubt. Doesn't know
processes.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.control_group import MEMORY, own_groups

_VMSTAT: Final = Path("/proc/vmstat")
_NAME: Final = "oom_kill"
_COUNTS: Final = ("memory.events", "memory.oom_control")
"""Of a group, of either version. Each counts its own processes, whoever's limit was met."""

_LOG: Final = Path("/dev/kmsg")
_OWN_PIDS: Final = Path("/proc/self/ns/pid")
_ALL_PIDS: Final = "pid:[4026531836]"
"""Of the processes that the log numbers; those of a container have other numbers there."""
_LOG_RECORDS: Final = 100_000
_RECORD_BYTES: Final = 8192

SURE: Final = "was killed by the system, which had no memory left"
LIKELY: Final = (
    "was killed by SIGKILL, most likely by the system: it killed somebody for want of memory "
    "meanwhile, and doesn't tell us whom"
)


@dataclass(frozen=True)
class Kills:
    """How many processes were killed for want of memory so far; these only grow."""

    of_group: int | None
    """Of our control group; None: nobody counts them, as outside of one."""
    of_machine: int
    """0 where nobody counts, as on macOS."""


def kills() -> Kills:
    """Return what the kernel has counted by now."""
    files = (group / name for group in own_groups(MEMORY) for name in _COUNTS)
    of_group = [found for file in files if (found := _count(file)) is not None]
    return Kills(max(of_group, default=None), _count(_VMSTAT) or 0)


def how_killed(pid: int, before: Kills) -> str:
    """Say how a process that ended by SIGKILL was killed for want of memory; empty: it wasn't.

    Our group's count decides where there is one, then the log of the kernel.

    before: what was counted when it began
    """
    now = kills()
    if now.of_group is not None and before.of_group is not None:
        return SURE if now.of_group > before.of_group else ""
    if now.of_machine <= before.of_machine:
        return ""
    log = _log()
    if log is None:
        return LIKELY
    return SURE if re.search(rf"\bKilled process {pid}\b", log) else ""


def _count(file: Path) -> int | None:
    fields = (line.split() for line in _read(file).splitlines())
    found = (field[1] for field in fields if len(field) == 2 and field[0] == _NAME)
    return next((int(number) for number in found if number.isdecimal()), None)


def _log() -> str | None:
    """Return what the kernel has logged; None where we may not read it, or it says other pids."""
    records: list[bytes] = []
    try:
        if str(_OWN_PIDS.readlink()) != _ALL_PIDS:
            return None
        descriptor = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with suppress(BlockingIOError):  # its end
            for _ in range(_LOG_RECORDS):
                with suppress(BrokenPipeError):  # the oldest were overwritten meanwhile
                    if not (record := os.read(descriptor, _RECORD_BYTES)):
                        break
                    records.append(record)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(records).decode("utf-8", "replace")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
