"""Readings of GPUs, from a driver that may fail in any of its answers."""

import pynvml

from jupiterd.cluster.values.gpu_load import GpuLoad
from jupiterd.hardware.nvidia_load import NvidiaLoads


class Driver:
    """The part of NVML that is used, for machines that have none."""

    NVML_TEMPERATURE_GPU = 0

    def __init__(self) -> None:
        self.opened = 0
        self.broken: set[str] = set()
        self.reasons = 0

    def _answer(self, name: str, value: object) -> object:
        if name in self.broken:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> object:  # noqa: N802
        return self._answer("reasons", self.reasons)

    def nvmlInit(self) -> None:  # noqa: N802
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object:  # noqa: N802
        return self._answer("handle", uuid)

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> object:  # noqa: N802
        return self._answer("utilization", pynvml.c_nvmlUtilization_t(gpu=89, memory=40))

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> object:  # noqa: N802
        return self._answer("memory", pynvml.c_nvmlMemory_t(used=13 << 30))

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> object:  # noqa: N802
        return self._answer("temperature", 71)

    def nvmlDeviceGetPowerUsage(self, handle: object) -> object:  # noqa: N802
        return self._answer("power", 312_500)


def test_a_gpu_is_read_in_our_units_over_one_session() -> None:
    driver = Driver()
    loads = NvidiaLoads(lambda: driver)
    assert loads.read(["GPU-1"]) == [GpuLoad(89.0, 13 << 30, 71.0, 312.5)]
    loads.read(["GPU-1"])
    assert driver.opened == 1


def test_what_a_gpu_does_not_say_is_unknown_and_the_rest_is_told() -> None:
    driver = Driver()
    driver.broken = {"power", "utilization"}
    assert NvidiaLoads(lambda: driver).read(["GPU-1"]) == [GpuLoad(None, 13 << 30, 71.0, None)]


def test_a_driver_that_failed_is_opened_anew() -> None:
    driver = Driver()
    loads = NvidiaLoads(lambda: driver)
    driver.broken = {"handle"}
    assert loads.read(["GPU-1", "GPU-2"]) == [GpuLoad(), GpuLoad()]
    driver.broken = set()
    assert loads.read(["GPU-1"])[0].utilization_percent == 89.0
    assert driver.opened == 2


def test_without_a_driver_nothing_is_known() -> None:
    def absent() -> None:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    assert NvidiaLoads(absent).read(["GPU-1"]) == [GpuLoad()]


def test_only_lower_clocks_for_heat_count_and_a_card_that_doesnt_say_isnt_hot() -> None:
    driver = Driver()
    loads = NvidiaLoads(lambda: driver)
    hot = pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
    for reasons, throttled in (
        (0, 0),
        (pynvml.nvmlClocksThrottleReasonSwPowerCap, 0),
        (hot, 2),
        (pynvml.nvmlClocksThrottleReasonHwThermalSlowdown | 1, 2),
    ):
        driver.reasons = reasons
        loads.read(["GPU-1", "GPU-2"])
        assert loads.throttled == throttled
    driver.reasons, driver.broken = hot, {"reasons"}
    loads.read(["GPU-1"])
    assert loads.throttled == 0
