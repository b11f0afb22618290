"""How busy this machine is: processor, memory, what one program takes of it, and its accelerators.

Owns asking the operating system and the drivers. Doesn't know who looks, or how often. A reading of
accelerators may take a moment, or hang in a broken driver (`time_limit`); that of a program's
memory, its disk and the sensors takes a millisecond or so: make both in a thread.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from jupiterd.cluster.values.gpu_load import GpuLoad, aligned
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.cluster.values.machine_load import Load
from jupiterd.hardware.apple import read_apple_loads
from jupiterd.hardware.nvidia_load import NvidiaLoads
from jupiterd.memory_limits import memory_bytes, memory_percent, used_memory_bytes
from jupiterd.source_filter.process_tree import descendants

APPLE_EVERY: Final = 2
"""Of so many readings of Apple's GPUs one is new: each starts a program."""

SENSORS_EVERY: Final = 5
"""The same of the processor's temperature: some sensors answer slowly."""

CPU_SENSORS: Final = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "acpitz")
"""What drivers call the processor's, the most exact first."""

HOTTEST_CELSIUS: Final = 150.0
"""Beyond it, or at 0 and below, a sensor isn't there."""


def start_counting() -> None:
    """Begin to count the processor's time: the share since never is no share."""
    psutil.cpu_percent(None)


def processor_and_memory() -> Load:
    """Return what the processor did since the last call in this thread, and the memory in use."""
    return {
        "cpu_percent": psutil.cpu_percent(None),
        "ram_percent": memory_percent(),
        "ram_used_bytes": used_memory_bytes(),
        "ram_bytes": memory_bytes(),
    }


class ProgramLoads:
    """The readings of a program and of what it needs: memory, disk, a processor that isn't hot."""

    def __init__(self, folder: Path, pid: int | None = None) -> None:
        """`folder` is where it writes; `pid` is this process unless another one is named."""
        self._folder = folder
        self._pid = os.getpid() if pid is None else pid
        self._readings = 0
        self._celsius: float | None = None

    def read(self) -> Load:
        """Return what is known; never fails."""
        if self._readings % SENSORS_EVERY == 0:
            self._celsius = cpu_temperature_celsius()
        self._readings += 1
        hot = {} if self._celsius is None else {"cpu_temperature_celsius": self._celsius}
        return resident_bytes(self._pid) | _disk(self._folder) | hot


def resident_bytes(pid: int) -> Load:
    """Return the memory that a program and all that it has started have resident.

    What several of them share counts once for each. Empty where it has ended.
    """
    try:
        own, below = psutil.Process(pid).memory_info().rss, descendants_rss_bytes(pid)
    except (psutil.Error, OSError):
        return {}
    return {"process_bytes": own + below, "daemon_rss_bytes": own, "workers_rss_bytes": below}


def descendants_rss_bytes(pid: int) -> int:
    """Return the resident memory of all processes below this one, in sum; 0 where there are none.

    Raises:
        psutil.Error: that process is gone.
    """
    found = 0
    for below in descendants(pid):
        with suppress(psutil.Error):  # it has ended meanwhile
            found += psutil.Process(below).memory_info().rss
    return found


def _disk(folder: Path) -> Load:
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return {}
    return {"disk_free_bytes": disk.free, "disk_bytes": disk.total}


def cpu_temperature_celsius() -> float | None:
    """Return the temperature of the hottest core; None where the system doesn't say."""
    try:
        return hottest_core(psutil.sensors_temperatures())
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def hottest_core(sensors: Mapping[str, Sequence[Any]]) -> float | None:
    """Return the hottest reading of the processor's sensors, by driver as psutil has them."""
    for name in CPU_SENSORS:
        degrees = [float(sensor.current) for sensor in sensors.get(name, ())]
        if plausible := [celsius for celsius in degrees if 0 < celsius < HOTTEST_CELSIUS]:
            return max(plausible)
    return None


class GpuLoads:
    """The readings of a machine's accelerators, in their order."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = gpus
        self._nvidia = NvidiaLoads()
        self._readings = 0
        self._apple: list[GpuLoad] = []

    def read(self) -> tuple[GpuLoad, ...]:
        """Return one reading for each accelerator."""
        cuda = [gpu.uuid for gpu in self._gpus if gpu.kind == "cuda"]
        metal = len(self._gpus) - len(cuda)
        found = iter(self._nvidia.read(cuda) if cuda else ())
        apple = iter(aligned(self._read_apple(), metal) if metal else ())
        return tuple(next(found if gpu.kind == "cuda" else apple) for gpu in self._gpus)

    @property
    def throttled(self) -> int:
        """How many of them ran slower for heat at the last reading; of Apple's nobody says."""
        return self._nvidia.throttled

    def _read_apple(self) -> list[GpuLoad]:
        if self._readings % APPLE_EVERY == 0:
            self._apple = read_apple_loads()
        self._readings += 1
        return self._apple
