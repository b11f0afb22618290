"""How busy this machine is: processor, memory, what one program takes of it, and its accelerators.

Owns asking the operating system and the drivers. Doesn't know who looks, or how often. A reading of
accelerators or of a program's children may take a moment: make it in a thread.
"""

from collections.abc import Sequence

import psutil

from jupiterd.cluster.gpu_load import GpuLoad, aligned
from jupiterd.cluster.hardware import Gpu
from jupiterd.hardware.apple_load import read_apple_loads
from jupiterd.hardware.nvidia_load import NvidiaLoads

Load = dict[str, float]


def start_counting() -> None:
    """Begin to count the processor's time: the share since never is no share."""
    psutil.cpu_percent(None)


def processor_and_memory() -> Load:
    """Return what the processor did since the last call, and how much memory is in use."""
    memory = psutil.virtual_memory()
    return {
        "cpu_percent": psutil.cpu_percent(None),
        "ram_percent": memory.percent,
        "ram_used_bytes": memory.total - memory.available,
        "ram_bytes": memory.total,
    }


def program_bytes(pid: int | None = None) -> int | None:
    """Return the memory that a program (this one) and all that it started have resident.

    What several of them share counts once for each. None where it can't be told, or it has ended.
    """
    try:
        program = psutil.Process(pid)
        family = [program, *program.children(recursive=True)]
    except (psutil.Error, OSError):
        return None
    return sum(map(_resident_bytes, family)) or None


class GpuLoads:
    """The readings of a machine's accelerators, in their order."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = gpus
        self._nvidia = NvidiaLoads()

    def read(self) -> tuple[GpuLoad, ...]:
        """Return one reading for each accelerator."""
        cuda = [gpu.uuid for gpu in self._gpus if gpu.kind == "cuda"]
        metal = len(self._gpus) - len(cuda)
        found = iter(self._nvidia.read(cuda) if cuda else ())
        apple = iter(aligned(read_apple_loads(), metal) if metal else ())
        return tuple(next(found if gpu.kind == "cuda" else apple) for gpu in self._gpus)

    def close(self) -> None:
        """Let the drivers go."""
        self._nvidia.close()


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except (psutil.Error, OSError):  # it has just ended
        return 0
