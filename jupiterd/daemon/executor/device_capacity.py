"""Whether a gang's ranks may run on this node just now: have devices and disk room for them?

Owns that answer, and its reason in one line. Doesn't know models: a request says what ranks need.
"""

import asyncio
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

from jupiterd.cluster.planning.engines import TORCH
from jupiterd.cluster.planning.rank_placement import CUDA, MAX_RANKS_OF_ONE
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE, Need, first_that_fits
from jupiterd.errors import (
    DeviceBusyError,
    DeviceFullError,
    DiskFullError,
    JupiterError,
    ModelTooLargeError,
)
from jupiterd.hardware.rank_devices import RankDevice, free_memory_bytes, rank_device
from jupiterd.processes.device_locks import call_in, holder_of
from jupiterd.rpc import peer_pb2

MAX_NEEDS = 64

DRIVER_S = 3.0
"""A driver that sleeps takes a second or two."""

FORMING = "a gang that is being formed"

_driver = threading.Lock()
"""One look at a time: where a driver hangs, one thread does with it, and not one for each look."""

FreeBytes = Callable[[RankDevice], int]


async def answer(
    machine: Hardware,
    request: peer_pb2.PrepareRanksRequest,
    store: Path,
    free_bytes: FreeBytes = free_memory_bytes,
) -> peer_pb2.PrepareRanksReply:
    """Say how many sequences each rank may hold at a time, or why none may run here.

    store: the folder in which checkpoints are written
    """
    needs = [(need.micro_batch, need.size_bytes) for need in request.needs[:MAX_NEEDS]]
    devices = rank_devices(machine, request.engine, request.ranks)
    try:
        await asyncio.to_thread(check_disk, store, request.checkpoint_bytes)
        await _check_free(devices)
        micro_batch, note = await asyncio.to_thread(room_for, needs, devices, free_bytes)
    except JupiterError as error:
        failure = peer_pb2.Failure(code=error.code, message=error.message, hint=error.hint)
        return peer_pb2.PrepareRanksReply(failure=failure)
    return peer_pb2.PrepareRanksReply(micro_batch=micro_batch, note=note)


def check_disk(store: Path, checkpoint_bytes: int) -> None:
    """Raise DiskFullError where not even one checkpoint would find room, whatever is given up."""
    free_bytes = shutil.disk_usage(store).free
    if free_bytes < checkpoint_bytes:
        raise DiskFullError(
            f"the disk of the state folder has {free_bytes / 1e9:.1f} GB free, and a checkpoint "
            f"takes {checkpoint_bytes / 1e9:.1f} GB"
        )


def rank_devices(machine: Hardware, engine: str, ranks: int) -> list[RankDevice]:
    """Return where so many ranks compute; 0: as many as this machine usually has."""
    usual = len(machine.devices) if engine == TORCH else 1
    count = min(max(1, ranks or usual), MAX_RANKS_OF_ONE)
    return [rank_device(machine, engine, local_rank) for local_rank in range(count)]


def room_for(
    needs: Sequence[Need], devices: Sequence[RankDevice], free_bytes: FreeBytes
) -> tuple[int, str]:
    """Return the micro batch that every rank has room for, and why it is a smaller one.

    Raises:
        DeviceBusyError: the driver hasn't answered an earlier look yet.
        DeviceFullError: other programs leave too little memory, even for one sequence at a time.
        ModelTooLargeError: a device would be too small even if nobody else used it.
    """
    with _driver_errors():
        found = [
            _room_on(device, ranks, needs, free_bytes) for device, ranks in Counter(devices).items()
        ]
    return min(found, default=(0, ""))


@contextmanager
def _driver_errors() -> Generator[None]:
    if not _driver.acquire(timeout=DRIVER_S):
        raise DeviceBusyError(
            "its driver doesn't say how much memory is free", "restart that machine if it stays so"
        )
    try:
        yield
    finally:
        _driver.release()


async def _check_free(devices: Iterable[RankDevice]) -> None:
    for device in devices:
        if device.uuid and (holder := await holder_of(device.uuid)):
            raise DeviceBusyError(f"{device.name} ({device.uuid}) is held by {holder}")
        if device.uuid:  # else what is generated there would fill the memory that is looked at
            await call_in(device.uuid, FORMING)


def _room_on(
    device: RankDevice, ranks: int, needs: Sequence[Need], free_bytes: FreeBytes
) -> tuple[int, str]:
    requested = needs[0][0] if needs else 0
    free = free_bytes(device) if needs else 0
    if not free:  # nobody knows: the rank will find out
        return requested, ""
    has_its_own = device.name.startswith(CUDA)
    reserved = round(device.memory_bytes * RESERVED_SHARE) if has_its_own else 0
    fitting = first_that_fits(needs, ranks, free, reserved)
    free_text = f"{device.name} has {free / 1e9:.1f} GB free"
    if fitting is None:
        raise _too_little(device, ranks * needs[-1][1] + reserved, free_text)
    return fitting, "" if fitting == requested else f"micro batches of {fitting}: {free_text}"


def _too_little(device: RankDevice, least_bytes: int, free_text: str) -> JupiterError:
    """Return why not even the least fits."""
    kind = ModelTooLargeError if 0 < device.memory_bytes < least_bytes else DeviceFullError
    return kind(f"{free_text}, and a gang needs {least_bytes / 1e9:.1f} GB there at the least")
