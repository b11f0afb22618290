"""Who has a GPU while models are pinned to it."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.serving.engines.engine_devices import EngineDevices
from jupiterd.errors import DeviceBusyError
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.processes.device_locks import device_locked

CARD = Gpu("a card", "GPU-1", 1 << 34, "cuda")
WITH_A_CARD = Hardware(
    "Linux", "x86_64", "a processor", 2, 16 << 30, (CARD,), ("torch",), devices=("cuda:0",)
)


async def is_locked(folder: Path) -> bool:
    try:
        async with device_locked("GPU-1", "a gang", folder):
            return False
    except DeviceBusyError:
        return True


async def test_two_pinned_models_that_are_loaded_at_a_time_share_the_lock(tmp_path: Path):
    devices = EngineDevices(WITH_A_CARD, DeviceLoans(tmp_path), lambda: True, tmp_path)
    both = asyncio.Event()
    loaded: list[int | None] = []

    async def load(name: str) -> None:
        async with devices.used(name) as use:
            loaded.append(use.descriptor)
            if len(loaded) == 2:
                both.set()
            await both.wait()

    async with asyncio.timeout(10):
        await asyncio.gather(load("one"), load("two"))
    assert loaded[0] is not None
    assert loaded[0] == loaded[1]
    assert not await is_locked(tmp_path)


async def test_a_model_beside_one_that_was_pinned_shares_its_lock(tmp_path: Path):
    is_pinned = True
    devices = EngineDevices(WITH_A_CARD, DeviceLoans(tmp_path), lambda: is_pinned, tmp_path)
    async with devices.used("one"):
        is_pinned = False  # its endpoint was closed; it is loaded for some minutes yet
        async with devices.used("two") as use:
            assert use.loan is None
            assert await is_locked(tmp_path)


@pytest.mark.parametrize("is_pinned", [False, True])
async def test_a_gpu_is_free_after_its_last_model(tmp_path: Path, is_pinned: bool):
    devices = EngineDevices(WITH_A_CARD, DeviceLoans(tmp_path), lambda: is_pinned, tmp_path)
    async with devices.used("one"), devices.used("two"):
        pass
    assert not await is_locked(tmp_path)
