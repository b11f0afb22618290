"""How busy this very machine is."""

import os
import plistlib
import subprocess
import sys

from jupiterd.cluster.gpu_load import GpuLoad
from jupiterd.cluster.hardware import Gpu
from jupiterd.hardware import machine_load
from jupiterd.hardware.apple_load import parse
from jupiterd.hardware.machine_load import GpuLoads, processor_and_memory, program_bytes


def test_memory_in_use_and_its_share_are_the_same_figure() -> None:
    load = processor_and_memory()
    share = 100 * load["ram_used_bytes"] / load["ram_bytes"]
    assert abs(share - load["ram_percent"]) < 0.1
    assert 0 <= load["cpu_percent"] <= 100


def test_a_program_counts_with_what_it_has_started() -> None:
    alone = program_bytes(os.getpid())
    assert alone is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        child_bytes = program_bytes(child.pid)
        together = program_bytes()
        child.communicate(b"\n")
    assert child_bytes
    assert together
    assert together > alone
    assert program_bytes(child.pid) is None, "it has ended: that is no memory, not 0"


def test_accelerators_of_both_makers_are_read_in_the_order_of_the_machine(monkeypatch) -> None:
    monkeypatch.setattr(machine_load, "read_apple_loads", lambda: [GpuLoad(12.0)])
    gpus = (Gpu("M4", "m", 1, "metal"), Gpu("absent", "GPU-0", 1, "cuda"))
    loads = GpuLoads(gpus)
    monkeypatch.setattr(loads._nvidia, "read", lambda uuids: [GpuLoad(50.0) for _ in uuids])
    assert loads.read() == (GpuLoad(12.0), GpuLoad(50.0))


def test_the_registry_of_a_mac_tells_use_and_memory_and_nothing_else() -> None:
    told = {"Device Utilization %": 37, "In use system memory": 5 << 30, "Tiler Utilization %": 9}
    entries = plistlib.dumps([{"PerformanceStatistics": told}, {"IOClass": "AGXAccelerator"}])
    assert parse(entries) == [GpuLoad(37.0, 5 << 30), GpuLoad()]
    assert parse(b"") == parse(b"<plist>") == parse(plistlib.dumps({"a": 1})) == []
