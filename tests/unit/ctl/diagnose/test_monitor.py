"""The blocks of `jupiterctl monitor`."""

import json
import re

import pytest

from jupiterd.ctl.diagnose import monitor
from jupiterd.ctl.output.load_blocks import block_lines, node_rows
from tests.support.ctl.documents import ALPHA, BETA, STATUS, STATUS_WITH_NEWCOMER

GIB = 1 << 30
LOAD = {
    "cpu_percent": 68.5,
    "ram_percent": 72.1,
    "ram_used_bytes": round(47.9 * GIB),
    "ram_bytes": round(66.4 * GIB),
    "process_bytes": round(2.3 * GIB),
}
GPU_LOAD = {
    "utilization_percent": 89.0,
    "memory_used_bytes": round(12.1 * GIB),
    "temperature_celsius": 71.0,
    "power_watts": 312.5,
}
GPU = {"name": "NVIDIA RTX 4090", "uuid": "u", "memory_bytes": 24 * GIB, "kind": "cuda"}
HARDWARE = STATUS["nodes"][0]["hardware"] | {"gpus": [GPU]}
BUSY = STATUS["nodes"][0] | {"hardware": HARDWARE, "load": LOAD, "gpu_loads": [GPU_LOAD]}
STAMP = "2026-11-21 22:13:04"
BLOCK = [
    "[2026-11-21 22:13:04] CPU: 68.5% | RAM: 72.1% (47.9 GB / 66.4 GB) | RAM process: 2.3 GB",
    "- GPU 0 (NVIDIA RTX 4090) | Utilization: 89% | Memory: 12.1 GB / 24.0 GB",
]


@pytest.fixture(autouse=True)
def at_a_known_time(monkeypatch):
    told = monitor.time.strptime(STAMP, "%Y-%m-%d %H:%M:%S")
    monkeypatch.setattr(monitor.time, "localtime", lambda: told)


def test_one_machine_is_one_block():
    assert block_lines(node_rows({"nodes": [BUSY]}), STAMP) == BLOCK


def test_the_machines_of_a_cluster_stand_below_their_names(daemon, ctl, golden):
    silent = STATUS["nodes"][1] | {"name": "beta", "hardware": HARDWARE, "load": LOAD}
    daemon.documents["status"] = STATUS_WITH_NEWCOMER | {"nodes": [BUSY, silent]}
    ran = ctl("monitor", "--once")
    assert (ran.exit_code, ran.err) == (0, "")
    golden("monitor.txt", ran.out)


def test_scripts_get_bytes_and_null_where_nothing_is_known(daemon, ctl, golden):
    silent = STATUS["nodes"][1] | {"name": "beta", "hardware": HARDWARE, "load": LOAD}
    daemon.documents["status"] = STATUS | {"nodes": [BUSY, silent]}
    ran = ctl("monitor", "--once", "-o", "json")
    golden("monitor.json", re.sub(r'"at": "[^"]*"', '"at": "2026-11-21T22:13:04+0000"', ran.out))
    gone = json.loads(ran.out)["nodes"][1]
    assert gone["cpu_percent"] is gone["gpus"][0]["utilization_percent"] is None


def test_who_waits_outside_is_no_machine_of_the_cluster():
    assert [row["id"] for row in node_rows(STATUS_WITH_NEWCOMER)] == [ALPHA, BETA]


def test_a_node_of_an_older_version_tells_less_and_nothing_becomes_zero():
    older = BUSY | {"load": {"cpu_percent": 0.0, "ram_percent": 50.0}}
    del older["gpu_loads"]
    first, second = block_lines(node_rows({"nodes": [older]}), STAMP)
    assert first.endswith("CPU: 0.0% | RAM: 50.0% (32.0 GB / 64.0 GB) | RAM process: N/A")
    assert second.endswith("| Utilization: N/A | Memory: N/A / 24.0 GB")


def test_without_a_daemon_this_machine_alone_is_shown(ctl):
    ran = ctl("monitor", "--once", "-o", "json")
    assert ran.exit_code == 0
    assert ran.err.startswith("jupiterctl: no jupiterd answers on ")
    assert ran.err.endswith("; showing this machine alone\n")
    document = json.loads(ran.out)
    (row,) = document["nodes"]
    assert document["source"] == "this machine"
    assert row["ram_bytes"] > row["ram_used_bytes"] > 0
    assert row["process_bytes"] is None


def test_jsonl_goes_on_until_somebody_interrupts(daemon, ctl, monkeypatch):
    daemon.documents["status"] = STATUS | {"nodes": [BUSY]}
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(monitor, "pause", pause)
    ran = ctl("monitor", "--interval", "5s", "-o", "jsonl")
    assert ran.exit_code == 130
    assert waited == [5.0] * 3
    assert [json.loads(line)["source"] for line in ran.out.splitlines()] == ["daemon"] * 3


def test_a_daemon_that_goes_and_comes_back_is_told_of_once(daemon, ctl, monkeypatch):
    from jupiterd.ctl import calls
    from jupiterd.errors import DaemonUnreachableError, TimedOutError

    answers = iter([STATUS, DaemonUnreachableError, TimedOutError, STATUS])

    def ask(*_: object) -> object:
        if isinstance(answer := next(answers), type):
            raise answer("no jupiterd answers")
        return answer

    looks = iter([False, False, False, True])

    def pause(_: float) -> None:
        if next(looks):
            raise KeyboardInterrupt

    monkeypatch.setattr(calls, "ask", ask)
    monkeypatch.setattr(monitor, "pause", pause)
    ran = ctl("monitor", "-o", "jsonl")
    sources = [json.loads(line)["source"] for line in ran.out.splitlines()]
    assert sources == ["daemon", "this machine", "this machine", "daemon"]
    assert ran.err.rstrip() == (
        "jupiterctl: no jupiterd answers; showing this machine alone\n"
        "jupiterctl: jupiterd answers again"
    )


def test_an_interval_that_is_none_is_refused(ctl):
    ran = ctl("monitor", "--interval", "0")
    assert (ran.exit_code, ran.out) == (2, "")
    assert "too short" in ran.err
