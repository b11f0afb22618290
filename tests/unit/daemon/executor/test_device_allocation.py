"""Whose GPU a worker uses: a rank holds one, other work borrows it; the CPU is anybody's."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.executor import device_allocation
from jupiterd.daemon.executor.device_allocation import (
    DeviceAllocation,
    borrowed_device,
    chosen_engine,
    computes,
)
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import DeviceBusyError, WorkFailedError
from jupiterd.processes import device_locks
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.protocol.frames import Frame, Progressed

CUDA = Gpu("RTX 4090", "GPU-a", 24 << 30, "cuda")
METAL = Gpu("M4", "metal-a", 16 << 30, "metal")
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, devices=("cpu",))
RANK = WorkOrder("c/r1/train/3/0", 1, "train", {"local_rank": 0}, {}, 3)
WRITING = WorkOrder("c/r1/generate/0", 1, "generate", {}, {})


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(device_locks, "TAKE_S", 0.05)
    monkeypatch.setattr("jupiterd.processes.device_loans.TAKE_S", 0.05)
    monkeypatch.setattr("jupiterd.processes.device_loans.LOOK_S", 0.01)
    monkeypatch.setattr(
        device_allocation, "device_locked", partial(device_locks.device_locked, folder=tmp_path)
    )


def linux() -> Hardware:
    return replace(MACHINE, gpus=(CUDA,), devices=("cuda:0", "cpu"), engines=("torch",))


def mac() -> Hardware:
    return replace(MACHINE, system="Darwin", gpus=(METAL,), engines=("torch", "mlx"))


def daemon(folder: Path, name: str) -> DeviceAllocation:
    return DeviceAllocation(linux(), name, DeviceLoans(folder))


async def test_a_gpu_is_held_for_one_rank_at_a_time_and_the_cpu_for_none(tmp_path: Path) -> None:
    one, two = daemon(tmp_path, "one"), daemon(tmp_path, "two")
    async with one.used_by(RANK, RANK.params) as use:
        assert use.descriptor is not None
        with pytest.raises(DeviceBusyError, match="held by a gang of one"):
            async with two.used_by(RANK, RANK.params):
                pass
        on_cpu = replace(RANK, params={"local_rank": 1})
        for order in (on_cpu, replace(RANK, task="gate")):
            async with two.used_by(order, order.params) as free:
                assert free.descriptor is None


async def test_who_generates_borrows_the_gpu_and_is_ended_where_a_gang_wants_it(
    tmp_path: Path,
) -> None:
    one, two = daemon(tmp_path, "one"), daemon(tmp_path, "two")
    ended = asyncio.Event()

    async def end() -> None:
        ended.set()

    async def frames() -> AsyncIterator[Frame]:
        yield Progressed(1, 2, "prompts", {})
        await ended.wait()
        raise WorkFailedError("the generate worker was killed by SIGTERM")

    async def generate() -> None:
        async with one.used_by(WRITING, {"engine": "torch"}) as use:
            assert use.descriptor is not None
            watching = asyncio.get_running_loop().create_task(use.watch(end))
            async for _ in use.guarded(frames()):
                begun.set()
            await watching

    begun = asyncio.Event()
    writing = asyncio.get_running_loop().create_task(generate())
    await begun.wait()
    with pytest.raises(DeviceBusyError, match="held by generate of one"):
        async with two.used_by(WRITING, {"engine": "torch"}):
            pass
    async with two.used_by(RANK, RANK.params):
        with pytest.raises(DeviceBusyError, match="wanted by a gang of two"):
            await writing
        with pytest.raises(DeviceBusyError, match="held by a gang of two"):
            async with one.used_by(WRITING, {"engine": "torch"}):
                pass
    async with two.used_by(WRITING, {"engine": "torch"}):
        pass


async def test_what_a_worker_fails_with_by_itself_is_told_as_it_is(tmp_path: Path) -> None:
    async def frames() -> AsyncIterator[Frame]:
        yield Progressed(1, 2, "prompts", {})
        raise WorkFailedError("it broke")

    async with daemon(tmp_path, "one").used_by(WRITING, {"engine": "torch"}) as use:
        with pytest.raises(WorkFailedError, match="it broke"):
            async for _ in use.guarded(frames()):
                pass


@pytest.mark.parametrize(
    ("task", "params", "on_linux", "on_mac"),
    [
        ("generate", {}, "GPU-a", "metal-a"),
        ("generate", {"server": {"url": "http://box"}}, "", ""),
        ("write_pairs", {}, "GPU-a", "metal-a"),
        ("ask_judge", {"server": {"url": "http://box"}}, "", ""),
        ("train_proxy", {}, "GPU-a", "metal-a"),
        ("evaluate", {}, "GPU-a", "metal-a"),
        ("evaluate_held_out", {}, "GPU-a", "metal-a"),
        ("clean", {}, "", ""),
    ],
)
def test_what_computes_on_a_gpu_borrows_it(
    task: str, params: dict[str, object], on_linux: str, on_mac: str
) -> None:
    found: list[str] = []
    for here in (linux(), mac()):
        device = borrowed_device(task, {**params, **chosen_engine(task, params, here)}, here)
        found.append("" if device is None else device.uuid)
    assert found == [on_linux, on_mac]


def test_a_daemon_that_was_given_the_cpu_borrows_nothing() -> None:
    here = replace(linux(), devices=("cpu",))
    told = chosen_engine("generate", {}, here)
    assert told["device"] == "cpu"
    assert borrowed_device("generate", told, here) is None


@pytest.mark.parametrize(
    ("system", "engines", "engine"),
    [
        ("Darwin", ("torch", "mlx"), "mlx"),
        ("Darwin", ("torch",), "torch"),
        ("Linux", ("torch", "mlx"), "torch"),
        ("Linux", ("mlx",), "mlx"),
    ],
)
def test_text_is_scored_on_what_the_machine_computes_on_by_itself(
    system: str, engines: tuple[str, ...], engine: str
) -> None:
    here = replace(MACHINE, system=system, engines=engines)
    for task in ("evaluate", "evaluate_held_out"):
        assert chosen_engine(task, {}, here) == {"engine": engine, "device": "cpu"}
    trains = chosen_engine("train_proxy", {}, here)
    assert (trains["engine"], bool(trains["device"])) == (engine, True)
    assert chosen_engine("gate", {}, here) == {}
    told = chosen_engine("generate", {"engine": "transformers"}, here)
    assert told == {"engine": "torch", "wanted_engine": "transformers", "device": "cpu"}


@pytest.mark.parametrize(
    ("task", "params", "on_cpu", "beside_a_gpu"),
    [
        ("evaluate", {}, True, True),
        ("train_proxy", {}, True, True),
        ("generate", {}, True, True),
        ("generate", {"server": {"url": "http://box"}}, False, False),
        ("train", {"local_rank": 0}, True, False),
        ("train", {"local_rank": 1}, True, True),
        ("clean", {}, False, False),
    ],
)
def test_who_keeps_its_threads_busy_shares_them(
    task: str, params: dict[str, object], *, on_cpu: bool, beside_a_gpu: bool
) -> None:
    plain = replace(MACHINE, engines=("torch",))
    assert [computes(task, params, here) for here in (plain, linux())] == [on_cpu, beside_a_gpu]
