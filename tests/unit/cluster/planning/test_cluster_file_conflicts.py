"""What a cluster file may say of a machine, and what contradicts its own measurements."""

from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.planning.cluster_file_conflicts import contradictions
from jupiterd.cluster.planning.cluster_file_policy import ClusterFile, KnownMachine, MachineEntry
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.ids import NodeId

GIB = 1 << 30
LINES = {"device_type": 4, "memory_gb": 5, "chip": 6, "connection_type": 7, "name": 3}

BOX = Hardware(
    "Linux", "x86_64", "Intel(R) Core(TM) i7-9700 CPU @ 3.00GHz", 8, 63 * GIB,
    (Gpu("NVIDIA GeForce RTX 4090", "1", 24 * GIB, "cuda"),
     Gpu("NVIDIA GeForce RTX 4090", "2", 24 * GIB, "cuda")), ("torch",),
)  # fmt: skip
STUDIO = Hardware(
    "Darwin", "arm64", "Apple M2 Ultra", 24, 192 * GIB,
    (Gpu("Apple M2 Ultra", "3", 192 * GIB, "metal"),), ("mlx",),
)  # fmt: skip
PLAIN = Hardware("Linux", "aarch64", "aarch64", 4, 15 * GIB)


def told(hardware: Hardware | None, *kinds: InterfaceKind, **entry: Any) -> list[str]:
    machine = KnownMachine(NodeId("a" * 32), "box", frozenset(), hardware, frozenset(kinds))
    return list(contradictions(ClusterFile("c.yaml"), MachineEntry(**entry, lines=LINES), machine))


@pytest.mark.parametrize(
    ("hardware", "entry"),
    [
        (BOX, {"device_type": "nvidia", "memory_gb": 64, "chip": "RTX 4090"}),
        (BOX, {"memory_gb": 24, "chip": "rtx4090"}),
        (BOX, {"memory_gb": 48, "chip": "Core i7 9700"}),
        (replace(BOX, devices=("cpu",)), {"device_type": "cpu"}),
        (STUDIO, {"device_type": "mac", "memory_gb": 192, "chip": "M2 Ultra"}),
        (STUDIO, {"chip": "Apple M2"}),
        (PLAIN, {"device_type": "cpu", "memory_gb": 16, "chip": "whatever it is"}),
        (None, {"device_type": "mac", "memory_gb": 1, "chip": "abacus"}),
    ],
)
def test_what_is_so_or_not_known_is_no_contradiction(
    hardware: Hardware | None, entry: dict[str, Any]
) -> None:
    assert told(hardware, **entry) == []


@pytest.mark.parametrize(
    ("hardware", "entry", "line"),
    [
        (BOX, {"device_type": "cpu"}, "device_type nvidia, and c.yaml:4 says cpu"),
        (BOX, {"device_type": "mac"}, "device_type nvidia, and c.yaml:4 says mac"),
        (STUDIO, {"device_type": "nvidia"}, "device_type mac, and c.yaml:4 says nvidia"),
        (PLAIN, {"device_type": "nvidia"}, "device_type cpu, and c.yaml:4 says nvidia"),
        (STUDIO, {"memory_gb": 128}, "memory_gb 192.0, and c.yaml:5 says 128"),
        (BOX, {"memory_gb": 80}, "memory_gb 63.0 and 48.0 on its GPUs, and c.yaml:5 says 80"),
        (STUDIO, {"chip": "M4 Ultra"}, "chip Apple M2 Ultra, and c.yaml:6 says M4 Ultra"),
    ],
)
def test_what_is_not_so_is_told_with_both_sides_and_the_line(
    hardware: Hardware, entry: dict[str, Any], line: str
) -> None:
    assert told(hardware, **entry) == [f"box has {line}"]


@pytest.mark.parametrize(
    ("told_gb", "is_so"), [(17.2, True), (17.3, False), (12.8, True), (12.7, False)]
)
def test_memory_may_differ_by_fifteen_percent(told_gb: float, is_so: bool) -> None:
    assert (told(PLAIN, memory_gb=told_gb) == []) is is_so


def test_a_link_is_compared_where_it_is_known_and_any_link_in_use_will_do() -> None:
    wifi, ethernet = InterfaceKind.WIFI, InterfaceKind.ETHERNET
    assert told(None, connection_type="thunderbolt") == []
    assert told(None, wifi, ethernet, connection_type="wifi") == []
    assert told(None, wifi, ethernet) == []
    assert told(None, ethernet, wifi, connection_type="thunderbolt") == [
        "box has connection_type Ethernet and Wi-Fi, and c.yaml:7 says thunderbolt"
    ]


def test_a_name_that_the_machine_does_not_go_by_is_told() -> None:
    assert told(None, name="studio") == ["box has name box, and c.yaml:3 says studio"]


def test_what_a_member_says_of_itself_makes_no_line_long_and_steers_no_terminal() -> None:
    (line,) = told(replace(PLAIN, cpu="\x1b[2J" + "x" * 4000), chip="M2")
    assert len(line) < 120
    assert line.isprintable()
