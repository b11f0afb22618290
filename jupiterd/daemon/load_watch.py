"""How busy this machine is, looked at now and then for heartbeats and status.

Owns the latest readings and how often they are taken. Doesn't know what is shown of them.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from jupiterd.cluster.gpu_load import GpuLoad, aligned
from jupiterd.cluster.hardware import Gpu
from jupiterd.daemon.clock import now_s
from jupiterd.hardware.machine_load import (
    GpuLoads,
    Load,
    processor_and_memory,
    program_bytes,
    start_counting,
)

LOOK_S: Final = 1.0
"""People see it once a second; what is told again unchanged isn't read again (`peers`)."""

LOOK_AT_GPUS_S: Final = 2.0

LOOK_AT_PROGRAM_S: Final = 6.0
"""Finding a program's children means looking at every process there is."""


class LoadWatch:
    """The latest readings of this machine."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = gpus
        self._load: Load = {}
        self._due_s = 0.0
        self._program_bytes: int | None = None
        self._gpu_loads: tuple[GpuLoad, ...] = ()
        start_counting()

    def load(self) -> Load:
        """Return how busy processor and memory are; what isn't known is left out."""
        if now_s() >= self._due_s:
            self._due_s = now_s() + LOOK_S
            known = {} if self._program_bytes is None else {"process_bytes": self._program_bytes}
            self._load = processor_and_memory() | known
        return self._load

    def gpu_loads(self) -> tuple[GpuLoad, ...]:
        """Return the latest reading of each accelerator."""
        return aligned(self._gpu_loads, len(self._gpus))

    async def run(self) -> None:
        """Look again and again, in a thread: drivers take their time."""
        gpus, program_due_s = GpuLoads(self._gpus), 0.0
        try:
            while True:
                if now_s() >= program_due_s:
                    program_due_s = now_s() + LOOK_AT_PROGRAM_S
                    self._program_bytes = await asyncio.to_thread(program_bytes)
                if self._gpus:
                    self._gpu_loads = await asyncio.to_thread(gpus.read)
                await asyncio.sleep(LOOK_AT_GPUS_S if self._gpus else LOOK_AT_PROGRAM_S)
        finally:
            gpus.close()
