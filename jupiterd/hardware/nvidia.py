"""NVIDIA GPUs, through the driver's own library.

Owns asking NVML. Doesn't know CUDA or any framework; without a driver there is simply nothing here.
"""

import ctypes
import logging
from pathlib import Path
from typing import Any, Final

from jupiterd.cluster.values.hardware import Gpu
from jupiterd.memory_limits import memory_bytes

_log = logging.getLogger(__name__)

_LIBRARY: Final = "libnvidia-ml.so.1"
"""What pynvml would load; pynvml itself takes 2 MB of a daemon that runs for ever."""

_OWN_PIDS: Final = Path("/proc/self/ns/pid")
_ALL_PIDS: Final = "pid:[4026531836]"
"""Of a process that is in no container: the kernel's own number."""


def probe_nvidia(nvml: Any = None) -> tuple[Gpu, ...]:  # noqa: ANN401 - an untyped library
    """Return every GPU that the driver shows us; none where there is no driver. Never fails."""
    try:
        nvml = nvml or load_nvml()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - a broken driver fails in many ways
        _log.debug("nvml unavailable error=%s", error)
        return ()
    try:
        return tuple(_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
    except Exception as error:  # noqa: BLE001
        _log.warning("nvml failed error=%s", error)
        return ()
    finally:
        _shut_down(nvml)


def free_bytes(uuid: str, nvml: Any = None) -> int:  # noqa: ANN401 - an untyped library
    """Return how much of a GPU's memory nobody uses; 0 where the driver doesn't say."""
    try:
        nvml = nvml or load_nvml()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - a broken driver fails in many ways
        _log.debug("nvml unavailable error=%s", error)
        return 0
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByUUID(uuid)).free)
    except Exception as error:  # noqa: BLE001 - nor has each GPU memory of its own
        _log.debug("nvml says nothing of free memory error=%s", error)
        return 0
    finally:
        _shut_down(nvml)


def computing_pids(uuid: str, nvml: Any = None) -> frozenset[int] | None:  # noqa: ANN401
    """Return the processes that compute on a GPU; None where the driver, or who asks, can't know.

    Numbers of processes mean nothing in a container, and drivers for Windows give none.
    """
    try:
        if str(_OWN_PIDS.readlink()) != _ALL_PIDS:
            return None
        nvml = nvml or load_nvml()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - a broken driver fails in many ways
        _log.debug("nvml unavailable error=%s", error)
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return frozenset(int(at.pid) for at in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except Exception as error:  # noqa: BLE001
        _log.debug("nvml says nothing of processes error=%s", error)
        return None
    finally:
        _shut_down(nvml)


def load_nvml() -> Any:  # noqa: ANN401
    """Return pynvml; raises OSError where this machine has no driver for it to ask."""
    ctypes.CDLL(_LIBRARY)
    import pynvml

    return pynvml


def _gpu(nvml: Any, index: int) -> Gpu:  # noqa: ANN401
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return Gpu(
        name=str(nvml.nvmlDeviceGetName(handle)),
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        memory_bytes=_memory_bytes(nvml, handle),
        kind="cuda",
    )


def _memory_bytes(nvml: Any, handle: Any) -> int:  # noqa: ANN401
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        # A GPU that shares the machine's memory has none of its own to report.
        return memory_bytes()


def _shut_down(nvml: Any) -> None:  # noqa: ANN401
    try:
        nvml.nvmlShutdown()
    except Exception as error:  # noqa: BLE001
        _log.debug("nvml shutdown failed error=%s", error)
