"""How busy this machine is, looked at now and then for heartbeats and status.

Owns the latest readings and how often they are taken. Doesn't know what is shown of them.

Whatever may take long is read in a thread, and a driver that hangs is left alone there: until it
answers, nothing is known of its accelerators. It isn't closed either, for that may hang too.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jupiterd.cluster.values.gpu_load import GpuLoad, aligned
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.cluster.values.machine_load import Load
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.hardware.machine_load import (
    GpuLoads,
    ProgramLoads,
    processor_and_memory,
    start_counting,
)
from jupiterd.hardware.time_limit import LimitedCall

LOOK_S: Final = 2.0
"""What hasn't changed isn't sent again; with sixteen nodes that saves half of the traffic."""

COUNT_S: Final = 1.0
"""A smaller change of the processor's share isn't sent."""

GPU_LIMIT_S: Final = 1.5
"""A driver that takes longer hangs."""


class LoadMonitor:
    """The latest readings of this machine."""

    def __init__(self, gpus: Sequence[Gpu], folder: Path, lag_s: Callable[[], float]) -> None:
        """`folder` is the state folder; `lag_s` says how late the event loop runs."""
        self._gpus = gpus
        self._program = ProgramLoads(folder)
        self._gpu_reader = GpuLoads(gpus)
        self._gpu_calls = LimitedCall(self._gpu_reader.read)
        self._lag_s = lag_s
        self._load: Load = {}
        self._closer: Load = {}
        self._gpu_loads: tuple[GpuLoad, ...] = ()
        start_counting()
        self._counted_s = now_s() + COUNT_S
        self._due_s = 0.0

    def load(self) -> Load:
        """Return how busy the machine is; what isn't known is left out."""
        if now_s() >= self._due_s:
            is_counted = now_s() >= self._counted_s
            self._due_s = now_s() + LOOK_S if is_counted else self._counted_s
            self._load = self._new_load(is_counted=is_counted)
        return self._load

    def gpu_loads(self) -> tuple[GpuLoad, ...]:
        """Return the latest reading of each accelerator."""
        return aligned(self._gpu_loads, len(self._gpus))

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.to_thread(self.look_closer)
            await asyncio.sleep(LOOK_S)

    def look_closer(self) -> None:
        """Read what may take long: at most about GPU_LIMIT_S; one caller at a time."""
        self._closer = self._program.read()
        if self._gpus:
            self._gpu_loads = self._gpu_calls.within(GPU_LIMIT_S) or ()
            self._closer |= {"throttled_gpus": self._gpu_reader.throttled}

    def _new_load(self, *, is_counted: bool) -> Load:
        host = processor_and_memory()
        if not is_counted:
            del host["cpu_percent"]
        return host | self._closer | {"loop_lag_s": round(self._lag_s(), 3)}
