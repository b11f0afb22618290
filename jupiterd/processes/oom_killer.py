"""Tells whether Linux killed a process because memory ran out, and how certain that is.

Owns the three sources: the kernel's count for our control group, which contains the workers; the
kernel's log, if we may read it; and the count for the whole machine, which leaves a doubt. Doesn't
know processes.
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
"""Files of a control group, version 2 and 1. Each counts the group's killed processes, whichever
limit was exceeded."""

_LOG: Final = Path("/dev/kmsg")
_OWN_PIDS: Final = Path("/proc/self/ns/pid")
_ALL_PIDS: Final = "pid:[4026531836]"
"""The namespace whose process ids the log uses; a container numbers its processes differently."""
_LOG_RECORDS: Final = 100_000
_RECORD_BYTES: Final = 8192

SURE: Final = "was killed by the system, which had no memory left"
LIKELY: Final = (
    "was killed by SIGKILL, most likely by the system: it killed somebody for want of memory "
    "meanwhile, and doesn't tell us whom"
)


@dataclass(frozen=True)
class Kills:
    """How many processes the kernel has killed for lack of memory; the counts only grow."""

    of_group: int | None
    """In our control group; None if there is no count, for instance outside a group."""
    of_machine: int
    """On the whole machine; 0 if there is no count, as on macOS."""


def kills() -> Kills:
    """Return the kernel's current counts."""
    files = (group / name for group in own_groups(MEMORY) for name in _COUNTS)
    of_group = [found for file in files if (found := _count(file)) is not None]
    return Kills(max(of_group, default=None), _count(_VMSTAT) or 0)


def how_killed(pid: int, before: Kills) -> str:
    """Describe how the kernel killed a process for lack of memory; empty: it didn't.

    Call it for a process that ended by SIGKILL. Our group's count decides if there is one, then the
    kernel's log, then the machine's count.

    Args:
        pid: of the ended process.
        before: the counts when it started.
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
    """Return the kernel's log; None if we may not read it, or it uses other process ids."""
    records: list[bytes] = []
    try:
        if str(_OWN_PIDS.readlink()) != _ALL_PIDS:
            return None
        descriptor = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with suppress(BlockingIOError):  # the end of the log
            for _ in range(_LOG_RECORDS):
                with suppress(BrokenPipeError):  # the oldest records were overwritten
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
