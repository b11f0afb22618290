"""Is this Linux in WSL, and can other machines reach it?

Owns reading the facts and the finding. Doesn't know Windows beyond WSL's network modes.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.doctor.system_command import run_command

CHECK: Final = "wsl"
KERNEL: Final = Path("/proc/sys/kernel/osrelease")
GANG_PORTS: Final = "32768-60999"
"""The range from which Linux chooses ports for the ranks of a gang."""
SYSTEMD: Final = Path("/run/systemd/system")
MIRRORED: Final = (
    "write networkingMode=mirrored below [wsl2] in %UserProfile%\\.wslconfig (Windows 11 22H2 or "
    "newer), then run in Windows: wsl --shutdown"
)


@dataclass(frozen=True)
class WslReading:
    """What the kernel and WSL report."""

    kernel: str = ""
    mode: str = ""
    """The network mode that `wslinfo` reports; empty: unknown."""
    has_systemd: bool = True
    port: int = 0


def read(machine: ExaminedMachine) -> WslReading:
    """Return the kernel's name, and WSL's state if it is one of WSL's."""
    try:
        kernel = KERNEL.read_text(encoding="utf-8").strip()
    except OSError:
        return WslReading()
    if not is_wsl(kernel):
        return WslReading(kernel)
    mode = run_command("wslinfo", "--networking-mode").text.strip()
    return WslReading(kernel, mode, SYSTEMD.is_dir(), machine.port)


def is_wsl(kernel: str) -> bool:
    """Return whether a kernel's name is one of WSL's."""
    return "microsoft" in kernel.lower()


def judge(reading: WslReading) -> Finding:
    """Return the finding: whether other machines can connect."""
    if not is_wsl(reading.kernel):
        return not_here(CHECK, "this isn't WSL")
    if not re.search(r"microsoft-standard|WSL2", reading.kernel):
        return fail(
            CHECK, "this is WSL 1, which Jupiter doesn't know", "wsl --set-version DISTRO 2"
        )
    if reading.mode == "mirrored":
        return _judge_mirrored(reading)
    mode = reading.mode or "unknown, most likely nat"
    return warn(CHECK, f"WSL's network mode is {mode}: no other machine can get in", MIRRORED)


def _judge_mirrored(reading: WslReading) -> Finding:
    rule = (
        "in an administrator's PowerShell: New-NetFirewallHyperVRule -Name Jupiter -DisplayName "
        "Jupiter -Direction Inbound -VMCreatorId '{40E0AC32-46A5-438A-A0B2-2B479E8F2E90}' "
        f"-Protocol TCP -LocalPorts {reading.port or 'PORT'},{GANG_PORTS}; multicast isn't to be "
        "relied on there: name a machine with jupiterd --peer HOST"
    )
    if not reading.has_systemd:
        why = "WSL without systemd: jupiterd can't be a service"
        return warn(CHECK, why, "write systemd=true below [boot] in /etc/wsl.conf")
    if reading.port:
        return warn(CHECK, "WSL's network is mirrored; Windows' own firewall comes before it", rule)
    return ok(CHECK, "WSL's network is mirrored")
