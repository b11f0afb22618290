"""What a daemon reads of its machine, and that nothing there holds it up."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupiterd.cluster.values.gpu_load import GpuLoad
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.cluster.values.machine_load import LOAD_KEYS, shown_load
from jupiterd.daemon.observability.telemetry_limits import short_telemetry
from jupiterd.daemon.runtime.telemetry import read_telemetry
from jupiterd.daemon.view import load_monitor
from jupiterd.daemon.view.load_monitor import LoadMonitor
from jupiterd.hardware.machine_load import GpuLoads

CARD = Gpu("RTX 4090", "GPU-1", 24 << 30, "cuda")
BUSY = GpuLoad(89.0, 13 << 30, 71.0, 312.5)


class Clock:
    """The time as a test has it."""

    def __init__(self) -> None:
        self.now_s = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(load_monitor, "now_s", lambda: made.now_s)
    return made


@pytest.fixture
def may_answer(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A driver that answers once this is set."""
    answers = threading.Event()

    def read(_self: GpuLoads) -> tuple[GpuLoad, ...]:
        answers.wait()
        return (BUSY,)

    monkeypatch.setattr(GpuLoads, "read", read)
    yield answers
    answers.set()


def test_the_share_of_the_processor_is_unknown_in_the_first_second(
    tmp_path: Path, clock: Clock
) -> None:
    watch = LoadMonitor((), tmp_path, lambda: 0.01234)
    assert "cpu_percent" not in watch.load()
    assert shown_load(watch.load())["cpu_percent"] is None
    clock.now_s += load_monitor.LOOK_S
    assert watch.load()["cpu_percent"] >= 0
    assert watch.load()["loop_lag_s"] == 0.012


def test_what_takes_long_is_told_once_it_was_looked_at(tmp_path: Path, clock: Clock) -> None:
    watch = LoadMonitor((), tmp_path, lambda: 0.0)
    assert shown_load(watch.load())["process_bytes"] is None
    watch.look_closer()
    clock.now_s += load_monitor.LOOK_S
    assert {"process_bytes", "daemon_rss_bytes", "disk_free_bytes"} <= watch.load().keys()
    assert watch.load().keys() <= set(LOAD_KEYS)


async def test_the_machine_is_looked_at_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    done = asyncio.Event()

    def look(_self: LoadMonitor) -> None:
        looks.append(None)
        if len(looks) == 3:
            loop.call_soon_threadsafe(done.set)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(load_monitor, "LOOK_S", 0.0)
    monkeypatch.setattr(LoadMonitor, "look_closer", look)
    watching = asyncio.ensure_future(LoadMonitor((), tmp_path, lambda: 0.0).run())
    async with asyncio.timeout(10):
        await done.wait()
    watching.cancel()


def test_of_gpus_whose_driver_hangs_nothing_is_known(
    tmp_path: Path, may_answer: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = LoadMonitor((CARD,), tmp_path, lambda: 0.0)
    monkeypatch.setattr(load_monitor, "GPU_LIMIT_S", 0.01)
    watch.look_closer()
    assert watch.gpu_loads() == (GpuLoad(),)
    may_answer.set()
    monkeypatch.setattr(load_monitor, "GPU_LIMIT_S", 60.0)
    for thread in threading.enumerate():
        if thread.name == "probe":
            thread.join()
    watch.look_closer()
    assert watch.gpu_loads() == (BUSY,)


def test_what_a_machine_with_eight_gpus_tells_is_short_and_read_by_an_older_version(
    tmp_path: Path, clock: Clock
) -> None:
    watch = LoadMonitor((), tmp_path, lambda: 0.0)
    watch.look_closer()
    clock.now_s += load_monitor.LOOK_S
    told = {"load": watch.load() | {"cpu_temperature_celsius": 61.0}, "gpus": [BUSY.to_row()] * 8}
    raw = short_telemetry(told).raw
    assert len(raw) <= 1024
    assert read_telemetry(raw) == told
    assert all(isinstance(value, int | float) for value in told["load"].values())
