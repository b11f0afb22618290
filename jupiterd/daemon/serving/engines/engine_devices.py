"""The GPU that engines of this daemon compute on, and who has it first.

Owns what an engine holds while it is loaded: a loan, which ends as soon as a training wants the
GPU, or its lock where the owner has pinned the models that are served. Doesn't know engines. The
CPU is anybody's.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jupiterd.cluster.planning.engines import MLX, TORCH
from jupiterd.cluster.serving.engine_choice import CPU, METAL
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.serving.engines.engine_hindrances import device_kind
from jupiterd.errors import BusyError, DeviceBusyError
from jupiterd.hardware.rank_devices import RankDevice, rank_device
from jupiterd.processes.device_loans import DeviceLoans, Loan
from jupiterd.processes.device_locks import FOLDER, device_locked

RETRY_AFTER_S: Final = 30.0
"""A training may pause, or end, after so long; most last longer."""


@dataclass(frozen=True)
class DeviceUse:
    """One engine's use of a device."""

    kind: str = CPU
    """`cpu`, `cuda` or `metal`."""
    uuid: str = ""
    descriptor: int | None = None
    """A locked file for the engine to inherit: the GPU is free when its process is gone."""
    loan: Loan | None = None


@dataclass
class _Pinned:
    descriptor: int | None
    stack: AsyncExitStack
    engines: int = 0


@dataclass
class EngineDevices:
    """What engines of one daemon use of a machine's devices."""

    machine: Hardware
    loans: DeviceLoans
    is_pinned: Callable[[], bool] = lambda: False
    folder: Path = FOLDER
    _pinned: dict[str, _Pinned] = field(default_factory=dict[str, _Pinned])
    _pinning: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def kind(self) -> str:
        """Return what engines compute on here."""
        return device_kind(self.machine)

    @asynccontextmanager
    async def used(self, name: str) -> AsyncGenerator[DeviceUse]:
        """Let an engine use this machine's device, as long as the context is open.

        name: of the model, for others to read who wait

        Raises:
            BusyError: a training has the GPU, or another daemon's work.
        """
        device = self._device()
        if not device.uuid:
            yield DeviceUse(self.kind if device.name != CPU else CPU)
            return
        async with AsyncExitStack() as stack:
            holder = f"the model {name} that is served (process {os.getpid()})"
            is_pinned = self.is_pinned() or device.uuid in self._pinned
            hold = self._pin if is_pinned else self._borrow
            try:
                use = await stack.enter_async_context(hold(device.uuid, holder))
            except DeviceBusyError as error:
                raise BusyError(
                    f"this machine can't answer now: {error.message}",
                    "a training goes first; with pinned: true below serve: in jupiter.yaml, "
                    "the model does",
                    RETRY_AFTER_S,
                ) from error
            yield use

    def _device(self) -> RankDevice:
        return rank_device(self.machine, MLX if self.kind == METAL else TORCH, 0)

    @asynccontextmanager
    async def _borrow(self, uuid: str, holder: str) -> AsyncGenerator[DeviceUse]:
        async with self.loans.borrowed(uuid, holder) as loan:
            descriptor = None if loan is None else loan.descriptor
            yield DeviceUse(self.kind, uuid, descriptor, loan)

    @asynccontextmanager
    async def _pin(self, uuid: str, holder: str) -> AsyncGenerator[DeviceUse]:
        """Hold the GPU's lock, once for all engines of this daemon."""
        async with self._pinning:  # of two engines at a time the second would find it locked
            if (pinned := self._pinned.get(uuid)) is None:
                stack = AsyncExitStack()
                locked = device_locked(uuid, holder, self.folder)
                descriptor = await stack.enter_async_context(locked)
                pinned = self._pinned[uuid] = _Pinned(descriptor, stack)
            pinned.engines += 1
        try:
            yield DeviceUse(self.kind, uuid, pinned.descriptor)
        finally:
            pinned.engines -= 1
            if not pinned.engines:
                del self._pinned[uuid]
                await pinned.stack.aclose()
