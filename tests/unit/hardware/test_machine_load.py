"""How busy this very machine is."""

import os
import plistlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from jupiterd.cluster.values.gpu_load import GpuLoad
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.hardware import machine_load
from jupiterd.hardware.apple import parse_loads
from jupiterd.hardware.machine_load import (
    GpuLoads,
    ProgramLoads,
    hottest_core,
    processor_and_memory,
    resident_bytes,
)
from jupiterd.source_filter.process_tree import descendants


def test_memory_in_use_and_its_share_are_the_same_figure() -> None:
    load = processor_and_memory()
    share = 100 * load["ram_used_bytes"] / load["ram_bytes"]
    assert abs(share - load["ram_percent"]) < 0.1
    assert 0 <= load["cpu_percent"] <= 100


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A program that has started another one, whose id it prints."""
    program = (
        "import subprocess; below = subprocess.Popen(['cat'], stdin=0); "
        "print(below.pid, flush=True); below.wait()"
    )
    started = subprocess.Popen(
        (sys.executable, "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield started
    started.communicate()


def test_a_program_counts_with_what_it_has_started(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    assert {child.pid, grandchild} <= set(descendants(os.getpid()))
    assert descendants(child.pid) == [grandchild]
    load = resident_bytes(child.pid)
    resident = psutil.Process(grandchild).memory_info().rss  # it may have just begun, and grow
    assert load["workers_rss_bytes"] == pytest.approx(resident, abs=1 << 20)
    assert load["process_bytes"] == load["daemon_rss_bytes"] + load["workers_rss_bytes"]
    child.communicate()
    assert resident_bytes(child.pid) == {}, "it has ended: that is no memory, not 0"


def test_a_program_is_told_with_the_room_on_its_disk(tmp_path: Path) -> None:
    load = ProgramLoads(tmp_path).read()
    assert 0 < load["disk_free_bytes"] <= load["disk_bytes"]
    assert load["daemon_rss_bytes"] == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    assert "disk_free_bytes" not in ProgramLoads(tmp_path / "none").read()


def test_the_sensors_are_asked_for_few_of_the_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def celsius() -> float:
        asked.append(61.0)
        return asked[-1]

    monkeypatch.setattr(machine_load, "cpu_temperature_celsius", celsius)
    program = ProgramLoads(tmp_path)
    for _ in range(machine_load.SENSORS_EVERY + 1):
        assert program.read()["cpu_temperature_celsius"] == 61.0
    assert len(asked) == 2


class Sensor(NamedTuple):
    """A temperature, in degrees Celsius, as psutil has it."""

    label: str
    current: float


@pytest.mark.parametrize(
    ("sensors", "expected"),
    [
        ({}, None),
        ({"nvme": [40.0]}, None),
        ({"coretemp": [51.0, 63.0, 55.0], "acpitz": [27.8]}, 63.0),
        ({"k10temp": [0.0]}, None),
        ({"k10temp": [-273.0], "acpitz": [48.0]}, 48.0),
    ],
)
def test_the_hottest_sensor_of_the_processor_counts(
    sensors: dict[str, list[float]], expected: float | None
) -> None:
    told = {name: [Sensor("", value) for value in values] for name, values in sensors.items()}
    assert hottest_core(told) == expected


def test_accelerators_of_both_makers_are_read_in_the_order_of_the_machine(monkeypatch) -> None:
    monkeypatch.setattr(machine_load, "read_apple_loads", lambda: [GpuLoad(12.0)])
    gpus = (Gpu("M4", "m", 1, "metal"), Gpu("absent", "GPU-0", 1, "cuda"))
    loads = GpuLoads(gpus)
    monkeypatch.setattr(loads._nvidia, "read", lambda uuids: [GpuLoad(50.0) for _ in uuids])
    assert loads.read() == (GpuLoad(12.0), GpuLoad(50.0))


def test_the_registry_of_a_mac_tells_use_and_memory_and_nothing_else() -> None:
    told = {"Device Utilization %": 37, "In use system memory": 5 << 30, "Tiler Utilization %": 9}
    entries = plistlib.dumps([{"PerformanceStatistics": told}, {"IOClass": "AGXAccelerator"}])
    assert parse_loads(entries) == [GpuLoad(37.0, 5 << 30), GpuLoad()]
    assert (
        parse_loads(b"") == parse_loads(b"<plist>") == parse_loads(plistlib.dumps({"a": 1})) == []
    )


def test_a_mac_is_asked_for_few_of_the_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[GpuLoad] = []

    def registry() -> list[GpuLoad]:
        asked.append(GpuLoad(12.0))
        return asked

    monkeypatch.setattr(machine_load, "read_apple_loads", registry)
    loads = GpuLoads((Gpu("M4", "m", 1, "metal"),))
    for _ in range(machine_load.APPLE_EVERY + 1):
        assert loads.read() == (GpuLoad(12.0),)
    assert len(asked) == 2
