"""What a worker computes on here: its engine and device, and whose GPU that is.

Owns both for every task. A rank of a gang holds its GPU; a worker that generates, scores or trains
a small student borrows one, and is ended at once where a gang wants it. The CPU is anybody's.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from jupiterd.cluster.planning.engines import AUTO, MLX, TORCH, own_engine, writing_engine
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import DeviceBusyError, JupiterError
from jupiterd.hardware.nvidia import computing_pids
from jupiterd.hardware.rank_devices import RankDevice, rank_device
from jupiterd.processes.device_loans import DeviceLoans, Loan
from jupiterd.processes.device_locks import device_locked, judge_by
from jupiterd.protocol.frames import Frame

RANKS = {"train": TORCH, "train_mlx": MLX}
"""Task of a rank that trains -> its engine."""

WRITING = frozenset({"generate", "try_generator", "write_pairs", "ask_judge"})
"""Tasks by which models write, on an engine that each machine chooses for itself."""

SCORING = frozenset({"evaluate", "evaluate_held_out"})
"""Tasks that score text, on what the machine computes on by itself: all engines and devices agree
to 1e-5 bits per byte, and a verdict is decided on the scores as they were stored."""

TRAINING_ALONE = "train_proxy"
"""The task that trains without a gang, on what the machine computes on by itself."""

_ALONE = SCORING | {TRAINING_ALONE}


def chosen_engine(task: str, params: Mapping[str, Any], machine: Hardware) -> dict[str, str]:
    """Return the parameters of the engine that this machine chooses; {} for other tasks."""
    if task in WRITING:
        wanted = str(params.get("engine", AUTO))
        engine = writing_engine(wanted, machine)
        device = rank_device(machine, engine, 0).name
        return {"engine": engine, "wanted_engine": wanted, "device": device}
    if task in _ALONE:
        engine = own_engine(machine)
        return {"engine": engine, "device": rank_device(machine, engine, 0).name}
    return {}


def borrowed_device(task: str, params: Mapping[str, Any], machine: Hardware) -> RankDevice | None:
    """Return the GPU that a worker of no gang computes on; None where it needs none.

    params: with what `chosen_engine` says
    """
    engine = str(params.get("engine", ""))
    if task in WRITING and params.get("server"):
        return None
    if task in WRITING | _ALONE:
        device = rank_device(machine, engine, 0)
        return device if device.uuid else None
    return None


def computes(task: str, params: Mapping[str, Any], machine: Hardware) -> bool:
    """Say whether a worker keeps all the threads that it is given busy.

    A rank on a GPU hardly needs one, and whoever asks a server waits.

    params: with what `chosen_engine` says
    """
    if task in RANKS:
        return not rank_device(machine, RANKS[task], int(params.get("local_rank", 0))).uuid
    return task in _ALONE or (task in WRITING and not params.get("server"))


class Use:
    """One worker's use of a device."""

    def __init__(self, descriptor: int | None = None, loan: Loan | None = None) -> None:
        """Take the descriptor that the worker is given, and the loan that may be called in."""
        self.descriptor = descriptor
        self._loan = loan
        self._wanted_by = ""

    async def watch(self, end: Callable[[], Awaitable[None]]) -> None:
        """End the worker as soon as a gang wants its GPU; nothing where it is the worker's own."""
        if self._loan is not None:
            self._wanted_by = await self._loan.recalled()
            await end()

    async def guarded(self, frames: AsyncIterator[Frame]) -> AsyncGenerator[Frame]:
        """Yield what a worker says.

        Raises:
            DeviceBusyError: it was ended because a gang wants its GPU.
            JupiterError: whatever else it failed with.
        """
        try:
            async for frame in frames:
                yield frame
        except JupiterError as error:
            if self._wanted_by:
                raise DeviceBusyError(f"its GPU is wanted by {self._wanted_by}") from error
            raise


class DeviceAllocation:
    """Who uses which GPU of this machine, as far as this daemon's workers do."""

    def __init__(self, machine: Hardware, name: str, loans: DeviceLoans | None = None) -> None:
        self.machine = machine
        self._name = name
        self._loans = loans or DeviceLoans()
        judge_by(computing_pids)

    @asynccontextmanager
    async def used_by(self, order: WorkOrder, params: Mapping[str, Any]) -> AsyncGenerator[Use]:
        """Let a worker use what it computes on, as long as the context is open.

        Raises:
            DeviceBusyError: somebody else uses it.
        """
        if order.task in RANKS:
            local_rank = int(params.get("local_rank", 0))
            device = rank_device(self.machine, RANKS[order.task], local_rank)
            if device.uuid:
                async with device_locked(device.uuid, self._owner_text("a gang")) as descriptor:
                    yield Use(descriptor)
                return
        elif device := borrowed_device(order.task, params, self.machine):
            async with self._loans.borrowed(device.uuid, self._owner_text(order.task)) as loan:
                yield Use(None if loan is None else loan.descriptor, loan)
            return
        yield Use()

    def _owner_text(self, who: str) -> str:
        return f"{who} of {self._name} (process {os.getpid()})"
