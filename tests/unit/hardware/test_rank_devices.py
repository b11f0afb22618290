"""Which GPU a rank really computes on, whatever number it has there."""

from typing import Any

import pynvml
import pytest

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.hardware.cuda import visible_gpus
from jupiterd.hardware.nvidia import free_bytes
from jupiterd.hardware.rank_devices import RankDevice, free_memory_bytes, rank_device
from tests.unit.hardware.test_nvidia import Driver

GB = 10**9
FIRST, SECOND = (Gpu("RTX 4090", f"GPU-{letter}", 24 * GB, "cuda") for letter in "ab")
METAL = Gpu("Apple M4", "mac-0", 64 * GB, "metal")
MACHINE = Hardware(
    "Linux", "x86_64", "a CPU", 8, 16 * GB, (FIRST, SECOND), devices=("cuda:0", "cuda:1")
)


@pytest.mark.parametrize(
    ("environment", "uuids"),
    [
        ({}, ["GPU-a", "GPU-b"]),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, ["GPU-b", "GPU-a"]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-b"}, ["GPU-b"]),
        ({"CUDA_VISIBLE_DEVICES": "MIG-3f"}, ["MIG-3f"]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
    ],
)
def test_a_number_means_what_the_environment_leaves(
    environment: dict[str, str], uuids: list[str]
) -> None:
    assert [gpu.uuid for gpu in visible_gpus(MACHINE.gpus, environment)] == uuids


def test_two_daemons_that_see_one_gpu_under_unlike_numbers_mean_the_same() -> None:
    all_of_it = rank_device(MACHINE, "torch", 1, {})
    second_alone = rank_device(MACHINE, "torch", 0, {"CUDA_VISIBLE_DEVICES": "1"})
    assert (all_of_it.name, second_alone.name) == ("cuda:1", "cuda:0")
    assert all_of_it.uuid == second_alone.uuid == "GPU-b"


def test_a_rank_on_the_cpu_has_no_uuid() -> None:
    machine = Hardware("Linux", "x86_64", "a CPU", 8, 16 * GB, (FIRST,), devices=("cpu",))
    assert rank_device(machine, "torch", 0, {}) == RankDevice("cpu", "", 16 * GB)


def test_mlx_computes_on_the_macs_own_gpu() -> None:
    mac = Hardware("Darwin", "arm64", "Apple M4", 10, 64 * GB, (METAL,))
    assert rank_device(mac, "mlx", 0, {}) == RankDevice("gpu", "mac-0", 64 * GB)
    assert rank_device(MACHINE, "mlx", 0, {}).uuid == ""


def test_free_memory_is_asked_of_the_gpu_that_is_meant() -> None:
    device = rank_device(MACHINE, "torch", 1, {})
    assert free_memory_bytes(device, {"GPU-b": 3 * GB}.__getitem__) == 3 * GB
    assert free_memory_bytes(RankDevice("cpu", "", 0), lambda _: 0) > 0


class FreeDriver(Driver):
    """NVML, as far as free memory goes."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        return next(number for number, gpu in enumerate(self.gpus) if gpu[1] == uuid)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> pynvml.c_nvmlMemory_t:  # noqa: N802
        return pynvml.c_nvmlMemory_t(total=self.gpus[handle][2], free=5 * GB)


def test_nvml_tells_what_is_free_and_nothing_of_a_gpu_that_it_does_not_know() -> None:
    driver = FreeDriver(("RTX 4090", "GPU-a", 24 * GB))
    assert free_bytes("GPU-a", driver) == 5 * GB
    assert free_bytes("MIG-3f", driver) == 0
    assert driver.is_shut_down
