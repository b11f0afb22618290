"""One machine on a page."""

import json

import pytest

from jupiterd.cluster.text.node_page import COLUMNS, page
from jupiterd.errors import NotFoundError
from tests.support.ctl.documents import STATUS

GPU = {"name": "NVIDIA RTX 4090", "uuid": "GPU-1", "memory_bytes": 24 << 30, "kind": "cuda"}
HARDWARE = {
    "system": "Linux", "machine": "x86_64", "cpu": "AMD Ryzen 9 7950X 16-Core Processor",
    "cores": 32, "ram_bytes": 64 << 30, "gpus": [GPU], "engines": ["torch"], "on_mains": True,
    "devices": ["cuda:0"],
}  # fmt: skip
BETA = next(node for node in STATUS["nodes"] if node["name"].startswith("beta")) | {
    "name": "beta",
    "state": "alive",
    "last_heard_s": 0.2,
    "hardware": HARDWARE,
    "addresses": ["192.168.1.21:7946", "[fd00::21]:7946"],
}
POINTS = 4
NOTHING = dict.fromkeys(
    (
        "cpu_percent", "cpu_temperature_celsius", "ram_percent", "process_bytes",
        "disk_free_bytes", "loop_lag_s", "tokens_per_s", "step_lag", "rtt_s",
    )
)  # fmt: skip
NO_GPU = dict.fromkeys(
    ("utilization_percent", "memory_used_bytes", "temperature_celsius", "power_watts")
)
HISTORY = NOTHING | {
    "interval_s": 2.0,
    "points": POINTS,
    "cpu_percent": [10.0, 25.5, None, 90.0],
    "process_bytes": [2 << 30] * POINTS,
    "gpus": [NO_GPU | {"utilization_percent": [0, 50, 100, 89]}],
}
RECENT = NOTHING | {
    "interval_s": 2.0,
    "points": 2,
    "cpu_percent": [68.5, 70.0],
    "ram_percent": [72.1, None],
    "loop_lag_s": [0.012, 0.001],
    "tokens_per_s": [12345.6, 12000.0],
    "step_lag": [0, 1],
    "rtt_s": [0.000412, 0.0005],
    "gpus": [
        NO_GPU
        | {
            "utilization_percent": [95, 97],
            "memory_used_bytes": [12 << 30, 13 << 30],
            "temperature_celsius": [70, 71],
            "power_watts": [300.5, 312.5],
        }
    ],
}
LINK = {
    "target": "192.168.1.21:7946", "source": "192.168.1.20", "interface": "eth0",
    "kind": "ethernet", "rtt_ms": 0.412, "loss": 0.0, "mbit_per_s": None, "answered_s": 0.2,
    "answers": True, "active": True, "reason": "it answered first",
}  # fmt: skip
SILENT = LINK | {"target": "10.0.0.21:7946", "rtt_ms": None, "answers": False, "active": False}
SEAT = {
    "cycle": "c" * 16, "round": 1, "phase": "train", "node": BETA["id"], "rank": 1,
    "engine": "torch/gloo", "device": "cuda:0", "pid": 4711, "step": 120, "step_lag": 1,
    "tokens_per_s": 12000.0,
}  # fmt: skip
DOCUMENT = {
    "schema": "jupiter/v1",
    "node": BETA | {"links": [LINK, SILENT]},
    "seats": [SEAT],
    "versions": {"jupiterd": "0.1.0", "python": "3.11.7", "torch": "2.13.0"},
    "processes": [{"task": "train", "id": "cccccccc/r1/train/1", "epoch": 3}],
    "log": [
        "22:13:04 info    ready node=b2b2b2b2 port=7946",
        "22:13:09 warning link_stranded reason='the cable was pulled' note='and plugged in again'",
    ],
    "note": "",
    "history": HISTORY,
    "recent": RECENT,
}
SILENT_NODE = DOCUMENT | {
    "node": BETA | {"state": "gone", "last_heard_s": 20.4, "links": []},
    "seats": [], "versions": None, "processes": None, "log": None,
    "note": "there is no link to node b2b2b2b2", "history": NOTHING | {"points": 0, "gpus": []},
    "recent": NOTHING | {"points": 0, "gpus": []},
}  # fmt: skip


def test_a_machine_is_shown_on_a_page(daemon, ctl, golden):
    daemon.documents["node"] = DOCUMENT
    ran = ctl("node", "show", "beta")
    golden("node_show.txt", ran.out)
    assert (ran.exit_code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= COLUMNS


def test_bars_are_drawn_where_a_terminal_shows_them():
    drawn = page(DOCUMENT, draws=True)
    (cpu,) = [line for line in drawn if line.startswith("CPU ")]
    assert cpu.split() == ["CPU", "70.0", "%", "10.0", "%", "90.0", "%", "▁▃", "█▆▆"]
    assert max(map(len, drawn)) <= COLUMNS
    assert all(line.isascii() for line in page(DOCUMENT, draws=False))


def test_of_a_machine_that_does_not_answer_it_is_said_why_nothing_is_known(daemon, ctl, golden):
    daemon.documents["node"] = SILENT_NODE
    golden("node_show_silent.txt", ctl("node", "show", "beta").out)


def test_programs_get_the_document_as_it_is(daemon, ctl):
    daemon.documents["node"] = DOCUMENT
    assert json.loads(ctl("node", "show", "beta", "-o", "json").out) == DOCUMENT


def test_a_node_that_nobody_is_called_is_not_found(daemon, ctl):
    daemon.failure = NotFoundError("no node is called omega")
    assert ctl("node", "show", "omega").exit_code == 6


@pytest.mark.parametrize("key", ["versions", "processes", "log", "seats", "history", "recent"])
def test_a_page_is_shown_whatever_is_left_out(key):
    assert page({name: value for name, value in DOCUMENT.items() if name != key}, draws=True)


def test_nothing_that_a_machine_tells_steers_the_terminal():
    evil = "\x1b[2J"
    told = DOCUMENT | {"log": [evil], "versions": {evil: evil}, "seats": [SEAT | {"device": evil}]}
    assert not any("\x1b" in line for line in page(told, draws=True))
