"""The environment variables for NCCL and for torch's NCCL backend.

Owns their names and values. Doesn't know gangs: the caller names a rank's network. torch and NCCL
read them when a process group is created, not when they are loaded.
"""

from pathlib import Path
from typing import Final

import psutil

INFINIBAND: Final = Path("/sys/class/infiniband")
FAST_MBIT_PER_S: Final = 10_000
"""From this speed on, one socket can't fill the link."""

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
    """Return the variables for a rank that uses this interface of its node.

    Args:
        interface: its name; empty lets NCCL choose.
        first_host: the address of rank 0's node.
        speed_mbit_per_s: of that interface; None: as the system reports it, 0 if unknown.
        has_infiniband: whether to let NCCL look for InfiniBand devices.
    """
    found = {
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "30",  # the default detects a hang after minutes
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_FR_BUFFER_SIZE": "2000",  # the newer name of the same variable
        "NCCL_SOCKET_FAMILY": "AF_INET6" if ":" in first_host else "AF_INET",
    }
    if interface:
        found["NCCL_SOCKET_IFNAME"] = f"={interface}"  # "=": this name, not this prefix
    if not has_infiniband:
        found["NCCL_IB_DISABLE"] = "1"  # a search for missing devices is slow
    speed = _speed_of(interface) if speed_mbit_per_s is None else speed_mbit_per_s
    if speed >= FAST_MBIT_PER_S:
        found |= {"NCCL_NSOCKS_PERTHREAD": "2", "NCCL_SOCKET_NTHREADS": "2"}
    return found


def finds_infiniband(folder: Path = INFINIBAND) -> bool:
    """Return whether this machine has an InfiniBand or RoCE device."""
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
