"""How busy the GPU of an Apple chip is, as the system's own registry of devices says.

Owns one fixed command and reading what it prints. Doesn't know Metal. Temperature and power are
told to root alone, so they stay unknown here.
"""

import logging
import plistlib
import subprocess
from collections.abc import Mapping
from typing import Any, Final, cast

from jupiterd.cluster.values.gpu_load import GpuLoad

REGISTRY: Final = ("/usr/sbin/ioreg", "-a", "-r", "-d", "1", "-c", "IOAccelerator")
TIMEOUT_S: Final = 5.0

_UTILIZATION: Final = "Device Utilization %"
_MEMORY: Final = "In use system memory"

_log = logging.getLogger(__name__)


def read_apple_loads() -> list[GpuLoad]:
    """Return a reading for each accelerator; none where the system doesn't say. Never fails."""
    try:
        done = subprocess.run(REGISTRY, capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        _log.debug("ioreg failed error=%s", error)
        return []
    return parse(done.stdout)


def parse(registry: bytes) -> list[GpuLoad]:
    """Read what the command prints; it may be empty or broken."""
    try:
        entries: object = plistlib.loads(registry)
    except Exception as error:  # noqa: BLE001 - XML that is none fails in many ways
        _log.debug("ioreg unreadable error=%s", error)
        return []
    if not isinstance(entries, list):
        return []
    return [_load(cast("Mapping[str, Any]", e)) for e in entries if isinstance(e, Mapping)]


def _load(entry: Mapping[str, Any]) -> GpuLoad:
    figures: object = entry.get("PerformanceStatistics")
    if not isinstance(figures, Mapping):
        return GpuLoad()
    told = cast("Mapping[str, Any]", figures)
    utilization, memory = told.get(_UTILIZATION), told.get(_MEMORY)
    return GpuLoad(
        utilization_percent=float(utilization) if isinstance(utilization, int) else None,
        memory_used_bytes=memory if isinstance(memory, int) else None,
    )
