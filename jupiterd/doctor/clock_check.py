"""Is this machine's clock about right?

Owns reading whether it is synchronised, and the finding. Jupiter makes no decisions by the time of
day; certificates, logs and users need it.
"""

import ctypes
import sys
from dataclasses import dataclass
from typing import Final

from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, ok, warn

CHECK: Final = "clock"
EARLIEST_S: Final = 1_577_836_800.0
"""2020-01-01, when nodes' certificates become valid."""
LATEST_S: Final = 4_102_272_000.0
"""2099-12-30, a day before they expire."""
_TIME_ERROR: Final = 5
"""The kernel's state of a clock that isn't synchronised (TIME_ERROR of adjtimex)."""
_TIMEX_BYTES: Final = 512
FIX: Final = "sudo timedatectl set-ntp true (macOS: sudo sntp -sS time.apple.com)"


@dataclass(frozen=True)
class ClockReading:
    """The time, and whether the clock is synchronised."""

    wall_s: float
    is_synchronised: bool | None
    """None: the system doesn't say."""


def read(machine: ExaminedMachine) -> ClockReading:
    """Return the kernel's time and clock state; change nothing."""
    del machine
    return ClockReading(wall_s(), _is_synchronised())


def judge(reading: ClockReading) -> Finding:
    """Return the finding about the clock."""
    if not EARLIEST_S <= reading.wall_s <= LATEST_S:
        why = "the clock is decades off: no certificate of any node is valid now"
        return fail(CHECK, why, FIX)
    if reading.is_synchronised is False:
        why = "nobody keeps this clock right: times in logs and reports drift (no decision does)"
        return warn(CHECK, why, FIX)
    state = "is synchronised" if reading.is_synchronised else "is plausible"
    return ok(CHECK, f"the clock {state}")


def _is_synchronised() -> bool | None:
    if sys.platform != "linux":
        return None
    try:
        # All zeros means: change nothing, only report.
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
