from pathlib import Path

import pynvml
import pytest

from jupiterd.cluster.values.hardware import Gpu
from jupiterd.hardware.nvidia import probe_nvidia
from jupiterd.memory_limits import memory_bytes


class Driver:
    """The part of NVML that is used, for machines that have none."""

    NVMLError = pynvml.NVMLError

    def __init__(self, *gpus: tuple[str, str, int | None]) -> None:
        self.gpus = gpus
        self.is_shut_down = False

    def nvmlInit(self) -> None:  # noqa: N802
        pass

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_shut_down = True

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return self.gpus[handle][0]

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return self.gpus[handle][1]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> pynvml.c_nvmlMemory_t:  # noqa: N802
        total = self.gpus[handle][2]
        if total is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return pynvml.c_nvmlMemory_t(total=total)


def test_every_gpu_is_told_with_its_memory() -> None:
    driver = Driver(("NVIDIA RTX 4090", "GPU-1", 24 << 30), ("NVIDIA RTX 3060", "GPU-2", 12 << 30))
    assert probe_nvidia(driver) == (
        Gpu("NVIDIA RTX 4090", "GPU-1", 24 << 30, "cuda"),
        Gpu("NVIDIA RTX 3060", "GPU-2", 12 << 30, "cuda"),
    )
    assert driver.is_shut_down


def test_a_gpu_that_shares_the_machines_memory_is_told_with_all_of_it() -> None:
    (gpu,) = probe_nvidia(Driver(("NVIDIA GB10", "GPU-1", None)))
    assert gpu.memory_bytes == memory_bytes()


def test_a_driver_that_breaks_half_way_means_no_gpus_and_is_let_go() -> None:
    driver = Driver(("NVIDIA RTX 4090", "GPU-1", 24 << 30))

    def lost(handle: int) -> str:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    driver.nvmlDeviceGetName = lost
    assert probe_nvidia(driver) == ()
    assert driver.is_shut_down


def test_no_driver_means_no_gpus() -> None:
    driver = Driver()

    def absent() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    driver.nvmlInit = absent
    assert probe_nvidia(driver) == ()


def test_the_real_library_never_raises() -> None:
    assert all(gpu.kind == "cuda" and gpu.memory_bytes > 0 for gpu in probe_nvidia())


@pytest.mark.gpu
@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no GPU here")
def test_the_real_library_sees_a_gpu() -> None:
    assert probe_nvidia()[0].uuid.startswith("GPU-")
