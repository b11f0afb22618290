"""How busy the NVIDIA GPUs are, through the driver's own library.

Owns one session with NVML, kept open because opening takes longer than asking. Doesn't know what
GPUs there are (`nvidia`), or who looks. Calls may take a moment: make them in a thread.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from jupiterd.cluster.values.gpu_load import GpuLoad
from jupiterd.hardware.nvidia import load_nvml

_log = logging.getLogger(__name__)

MILLIWATTS = 1000.0

TOO_HOT = 0x20 | 0x40
"""The bits of NVML's reasons for lower clocks by which software and hardware report heat."""

Value = TypeVar("Value")


class NvidiaLoads:
    """Reads again and again; a driver that fails is opened again at the next reading."""

    def __init__(self, load: Callable[[], Any] = load_nvml) -> None:
        self._load = load
        self._nvml: Any = None
        self.throttled = 0
        """Of those that were read last: how many run slower because they are too hot."""

    def read(self, uuids: Sequence[str]) -> list[GpuLoad]:
        """Return a reading for each of these GPUs; nothing known of those that don't answer."""
        try:
            nvml = self._open()
        except Exception as error:  # noqa: BLE001 - a broken driver fails in many ways
            _log.debug("nvml unavailable error=%s", error)
            self.throttled = 0
            return [GpuLoad() for _ in uuids]
        found = [_read_one(nvml, uuid) for uuid in uuids]
        self.throttled = sum(_is_too_hot(nvml, uuid) for uuid in uuids)
        if uuids and all(load == GpuLoad() for load in found):
            self.close()
        return found

    def close(self) -> None:
        """Let the driver go."""
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            _known(nvml.nvmlShutdown)

    def _open(self) -> Any:  # noqa: ANN401 - an untyped library
        if self._nvml is None:
            nvml = self._load()
            nvml.nvmlInit()
            self._nvml = nvml
        return self._nvml


def _read_one(nvml: Any, uuid: str) -> GpuLoad:  # noqa: ANN401
    handle = _known(lambda: nvml.nvmlDeviceGetHandleByUUID(uuid))
    if handle is None:
        return GpuLoad()
    power = _known(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    return GpuLoad(
        utilization_percent=_known(lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        memory_used_bytes=_known(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
        temperature_celsius=_known(
            lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        ),
        power_watts=None if power is None else power / MILLIWATTS,
    )


def _is_too_hot(nvml: Any, uuid: str) -> bool:  # noqa: ANN401
    """Say whether a GPU has lowered its clocks for heat; one that doesn't say hasn't."""
    handle = _known(lambda: nvml.nvmlDeviceGetHandleByUUID(uuid))
    reasons = _known(lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)))
    return bool((reasons or 0) & TOO_HOT)


def _known(ask: Callable[[], Value]) -> Value | None:
    """Return an answer; None where this GPU doesn't give that one."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001
        _log.debug("nvml doesn't say error=%s", error)
        return None
