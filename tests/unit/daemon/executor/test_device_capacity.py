"""Whether a node has room for a gang's ranks, by made-up devices."""

import asyncio
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.executor import device_capacity
from jupiterd.daemon.executor.device_capacity import rank_devices, room_for
from jupiterd.errors import (
    DeviceBusyError,
    DeviceFullError,
    DiskFullError,
    ModelTooLargeError,
    from_wire,
)
from jupiterd.hardware.rank_devices import RankDevice
from jupiterd.processes import device_locks
from jupiterd.processes.device_locks import device_locked
from jupiterd.rpc import peer_pb2

GB = 10**9
NEEDS = [(8, 6 * GB), (4, 4 * GB), (2, 3 * GB), (1, 2 * GB)]
CUDA = RankDevice("cuda:0", "GPU-a", 10 * GB)
CPU = RankDevice("cpu", "", 16 * GB)
MACHINE = Hardware(
    "Linux", "x86_64", "a CPU", 8, 16 * GB, (Gpu("RTX", "GPU-a", 10 * GB, "cuda"),),
    devices=("cuda:0",),
)  # fmt: skip


def room(devices: Sequence[RankDevice], free_gb: float) -> tuple[int, str]:
    return room_for(NEEDS, devices, lambda _: round(free_gb * GB))


def test_what_fits_is_left_as_it_is():
    assert room([CUDA], 8) == (8, "")


def test_a_fuller_device_takes_fewer_at_a_time_and_says_why():
    assert room([CUDA], 5) == (4, "micro batches of 4: cuda:0 has 5.0 GB free")


def test_ranks_that_share_a_device_need_room_together():
    assert room([CPU, CPU], 7)[0] == 2


def test_of_unlike_devices_the_fuller_one_decides():
    free = {"GPU-a": 9 * GB, "GPU-b": 3 * GB}
    other = RankDevice("cuda:1", "GPU-b", 10 * GB)
    assert room_for(NEEDS, [CUDA, other], lambda device: free[device.uuid])[0] == 1


def test_a_device_that_others_fill_refuses_in_one_line():
    with pytest.raises(DeviceFullError) as refused:
        room([CUDA], 1.5)
    expected = "cuda:0 has 1.5 GB free, and a gang needs 3.0 GB there at the least"
    assert refused.value.message == expected
    assert refused.value.may_mend


def test_a_device_that_is_too_small_by_itself_is_another_matter():
    with pytest.raises(ModelTooLargeError) as refused:
        room([RankDevice("cuda:0", "GPU-a", 2 * GB)], 1.9)
    assert refused.value.is_permanent


def test_where_nobody_knows_what_is_free_the_rank_finds_out():
    assert room([CUDA], 0) == (8, "")


def test_a_node_has_a_rank_for_each_of_its_devices_unless_told_otherwise():
    assert [device.uuid for device in rank_devices(MACHINE, "torch", 0)] == ["GPU-a"]
    assert rank_devices(MACHINE, "torch", 2)[1].name == "cpu"


async def test_a_gpu_that_another_gang_holds_is_refused_and_its_holder_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(device_locks, "TAKE_S", 0.05)
    monkeypatch.setattr(
        device_capacity, "holder_of", lambda uuid: device_locks.holder_of(uuid, tmp_path)
    )
    request = peer_pb2.PrepareRanksRequest(
        engine="torch",
        ranks=1,
        needs=[peer_pb2.RankNeed(micro_batch=1, size_bytes=GB)],
    )
    async with device_locked("GPU-a", "a gang of beta (process 7)", tmp_path):
        failure = (
            await device_capacity.answer(MACHINE, request, tmp_path, lambda _: 9 * GB)
        ).failure
    error = from_wire(failure.code, failure.message, failure.hint)
    assert isinstance(error, DeviceBusyError)
    assert error.message == "cuda:0 (GPU-a) is held by a gang of beta (process 7)"
    reply = await device_capacity.answer(MACHINE, request, tmp_path, lambda _: 9 * GB)
    assert (reply.failure.code, reply.micro_batch) == ("", 1)


async def test_a_driver_that_hangs_holds_one_thread_and_the_next_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_capacity, "DRIVER_S", 0.05)
    asked, answers = threading.Event(), threading.Event()

    def hang(_device: RankDevice) -> int:
        asked.set()
        answers.wait(60.0)
        return 9 * GB

    async with asyncio.TaskGroup() as group:
        first = group.create_task(asyncio.to_thread(room_for, NEEDS, [CUDA], hang))
        try:
            assert await asyncio.to_thread(asked.wait, 60.0)
            with pytest.raises(DeviceBusyError, match="driver"):
                await asyncio.to_thread(room, [CUDA], 9)
        finally:
            answers.set()
    assert first.result() == (8, "")
    assert room([CUDA], 9) == (8, "")


async def test_a_disk_on_which_no_checkpoint_finds_room_is_refused_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    free_bytes = shutil.disk_usage(tmp_path).free

    async def asked(checkpoint_bytes: int) -> peer_pb2.PrepareRanksReply:
        request = peer_pb2.PrepareRanksRequest(engine="mlx", checkpoint_bytes=checkpoint_bytes)
        return await device_capacity.answer(MACHINE, request, tmp_path, lambda _: 9 * GB)

    assert (await asked(free_bytes // 2)).failure.code == ""
    failure = (await asked(2 * free_bytes)).failure
    error = from_wire(failure.code, failure.message, failure.hint)
    assert isinstance(error, DiskFullError)
    assert "GB free, and a checkpoint takes" in error.message
