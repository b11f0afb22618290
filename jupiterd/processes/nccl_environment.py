"""What NCCL and torch's part of it are told by variables.

Owns their names and values. Doesn't know gangs: a rank's network is handed in. torch and NCCL read
them when a group is made, not when they are loaded.
"""

from pathlib import Path
from typing import Final

import psutil

INFINIBAND: Final = Path("/sys/class/infiniband")
FAST_MBIT_PER_S: Final = 10_000
"""From here on one socket doesn't fill the wire."""

NAMES: Final = frozenset(
    {
        "NCCL_SOCKET_IFNAME",
        "NCCL_SOCKET_FAMILY",
        "NCCL_IB_DISABLE",
        "NCCL_NSOCKS_PERTHREAD",
        "NCCL_SOCKET_NTHREADS",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "TORCH_FR_BUFFER_SIZE",
    }
)


def nccl_environment(
    interface: str, first_host: str, speed_mbit_per_s: int | None = None, *, has_infiniband: bool
) -> dict[str, str]:
    """Return what a rank is told that uses this interface of its node.

    first_host: where rank 0's node is reached
    speed_mbit_per_s: of that interface; default: as the system says, which is 0 where it can't tell
    """
    found = {
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "30",  # by default a hang is noticed after minutes
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_FR_BUFFER_SIZE": "2000",  # the same, by its newer name
        "NCCL_SOCKET_FAMILY": "AF_INET6" if ":" in first_host else "AF_INET",
    }
    if interface:
        found["NCCL_SOCKET_IFNAME"] = f"={interface}"  # else every name that begins so
    if not has_infiniband:
        found["NCCL_IB_DISABLE"] = "1"  # looking for what isn't there is slow
    speed = _speed_of(interface) if speed_mbit_per_s is None else speed_mbit_per_s
    if speed >= FAST_MBIT_PER_S:
        found |= {"NCCL_NSOCKS_PERTHREAD": "2", "NCCL_SOCKET_NTHREADS": "2"}
    return found


def finds_infiniband(folder: Path = INFINIBAND) -> bool:
    """Say whether this machine has an InfiniBand or RoCE device."""
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _speed_of(interface: str) -> int:
    try:
        known = psutil.net_if_stats().get(interface)
    except OSError:
        return 0
    return 0 if known is None else known.speed
