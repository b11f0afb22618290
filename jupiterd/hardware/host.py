"""The machine itself: processor, memory, power.

Owns asking the operating system. Doesn't know accelerators.
"""

import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
from blake3 import blake3

from jupiterd.memory_limits import memory_bytes
from jupiterd.processor_limits import usable_cores

_CPUINFO = Path("/proc/cpuinfo")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_SYSCTL = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
_CPU_KEYS = ("model name", "Model", "Hardware", "cpu model")
"""x86 says the first; ARM boards one of the others, or nothing at all."""


@dataclass(frozen=True)
class Host:
    """What every machine has."""

    system: str
    machine: str
    cpu: str
    cores: int
    """Cores that this process may use, hyper-threads counted."""
    ram_bytes: int
    """Memory that it may use, with those that it starts."""
    on_mains: bool
    identity: str = ""
    """The same for all programs until it is switched off, also in containers; empty: unknown."""


def probe_host() -> Host:
    """Describe this machine; never fails."""
    return Host(
        system=platform.system(),
        machine=platform.machine(),
        cpu=_cpu(),
        cores=usable_cores(),
        ram_bytes=memory_bytes(),
        on_mains=is_on_mains(),
        identity=_identity(),
    )


def _identity() -> str:
    """Return a short digest of the kernel's own id of this boot; empty: unknown."""
    boot = _boot_on_macos() if sys.platform == "darwin" else _boot_on_linux()
    return blake3(boot.encode()).hexdigest(8) if boot else ""


def _boot_on_linux() -> str:
    try:
        return _BOOT_ID.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _boot_on_macos() -> str:
    try:
        done = subprocess.run(_BOOT_SYSCTL, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def cpu_name(cpuinfo: str) -> str:
    """Return the processor's name from the text of /proc/cpuinfo, or an empty string."""
    lines = [line.partition(":") for line in cpuinfo.splitlines()]
    values = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    return next((values[key] for key in _CPU_KEYS if values.get(key)), "")


def _cpu() -> str:
    try:
        found = cpu_name(_CPUINFO.read_text(errors="replace"))
    except OSError:
        found = ""
    return found or platform.processor() or platform.machine()


def is_on_mains() -> bool:
    """Machines without a battery, or that don't know, count as plugged in."""
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError):  # not on every system
        return True
    return battery is None or battery.power_plugged is not False
