"""Apple machines: what macOS says of the chip and its GPU, and how busy that is.

Owns four fixed commands and reading what they print. Doesn't know Metal or any framework. Only root
may read temperature and power, so they stay unknown.
"""

import json
import logging
import plistlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from jupiterd.cluster.values.gpu_load import GpuLoad
from jupiterd.cluster.values.hardware import Gpu, lent_to_gpu_bytes

PROFILER: Final = ("/usr/sbin/system_profiler", "SPHardwareDataType", "SPDisplaysDataType", "-json")
SYSCTL: Final = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string", "hw.memsize")
LIMIT: Final = ("/usr/sbin/sysctl", "-n", "iogpu.wired_limit_mb")
"""What the owner of the machine lets its GPU use; 0 where nobody has set it."""
REGISTRY: Final = ("/usr/sbin/ioreg", "-a", "-r", "-d", "1", "-c", "IOAccelerator")
TIMEOUT_S: Final = 5.0

_UTILIZATION: Final = "Device Utilization %"
_MEMORY: Final = "In use system memory"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AppleMachine:
    """The chip and the GPUs that MLX can use."""

    cpu: str
    gpus: tuple[Gpu, ...]


def probe_apple() -> AppleMachine:
    """Describe this Mac; what can't be read stays empty. Never fails."""
    return parse(_output(PROFILER), _output(SYSCTL), _output(LIMIT, is_everywhere=False))


def parse(profiler_json: str, sysctl_text: str, limit_text: str = "") -> AppleMachine:
    """Read the output of the commands; each may be empty or broken."""
    profile = _loaded(profiler_json)
    brand, memory_bytes = _sysctl_values(sysctl_text)
    machine = _first(profile, "SPHardwareDataType")
    displays = _entries(profile, "SPDisplaysDataType")
    owner = _text(machine, "platform_UUID")
    limit = limit_text.strip()
    limit_bytes = int(limit) << 20 if limit.isdecimal() else 0
    gpus = tuple(
        Gpu(
            name=_text(entry, "sppci_model") or brand,
            uuid=f"{owner}-{index}",
            # One memory for processor and GPU, which macOS doesn't give away as a whole.
            memory_bytes=limit_bytes or lent_to_gpu_bytes(memory_bytes),
            kind="metal",
        )
        for index, entry in enumerate(displays)
        if _is_apple_gpu(entry)
    )
    return AppleMachine(_text(machine, "chip_type") or brand, gpus)


def _is_apple_gpu(entry: Mapping[str, Any]) -> bool:
    """Intel Macs have GPUs of other makers, which MLX can't use."""
    return "apple" in _text(entry, "spdisplays_vendor").lower()


def _sysctl_values(text: str) -> tuple[str, int]:
    """Return (brand, memory in bytes)."""
    brand, _, memory = text.strip().partition("\n")
    return brand.strip(), int(memory) if memory.strip().isdecimal() else 0


def _loaded(text: str) -> Mapping[str, Any]:
    try:
        loaded = json.loads(text)
    except ValueError:
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _entries(profile: Mapping[str, Any], section: str) -> list[Mapping[str, Any]]:
    entries = profile.get(section)
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def _first(profile: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    return next(iter(_entries(profile, section)), {})


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _output(command: tuple[str, ...], *, is_everywhere: bool = True) -> str:
    """Return what it prints; a failure is logged where every Mac should have the command."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError) as error:
        if is_everywhere:
            _log.warning("probe failed command=%s error=%s", command[0], error)
        return ""
    return done.stdout


def read_apple_loads() -> list[GpuLoad]:
    """Return a reading for each accelerator; none where the system doesn't say. Never fails."""
    try:
        done = subprocess.run(REGISTRY, capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        _log.debug("ioreg failed error=%s", error)
        return []
    return parse_loads(done.stdout)


def parse_loads(registry: bytes) -> list[GpuLoad]:
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
    readings = cast("Mapping[str, Any]", figures)
    utilization, memory = readings.get(_UTILIZATION), readings.get(_MEMORY)
    return GpuLoad(
        utilization_percent=float(utilization) if isinstance(utilization, int) else None,
        memory_used_bytes=memory if isinstance(memory, int) else None,
    )
