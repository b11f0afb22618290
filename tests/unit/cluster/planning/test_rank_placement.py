"""Which rank runs where, and on what."""

import pytest

from jupiterd.cluster.planning.rank_placement import (
    RankPosition,
    device_of,
    place_of,
    training_devices,
)
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.ids import NodeId

A, B = NodeId("a"), NodeId("b")


def test_ranks_are_numbered_on_their_nodes_and_nodes_by_their_first_rank() -> None:
    gang = (B, B, A, B)
    assert [place_of(gang, rank) for rank in range(4)] == [
        RankPosition(node_rank=0, local_rank=0, local_world_size=3),
        RankPosition(node_rank=0, local_rank=1, local_world_size=3),
        RankPosition(node_rank=1, local_rank=0, local_world_size=1),
        RankPosition(node_rank=0, local_rank=2, local_world_size=3),
    ]


@pytest.mark.parametrize(
    ("wanted", "there", "devices"),
    [
        ((), 0, ("cpu",)),
        ((), 2, ("cuda:0", "cuda:1")),
        (("cpu",), 2, ("cpu",)),
        (("cpu", "cpu"), 0, ("cpu", "cpu")),
        (("2", "0"), 3, ("cuda:2", "cuda:0")),
        (("1", "cpu"), 2, ("cuda:1", "cpu")),
    ],
)
def test_a_node_has_a_rank_for_each_device(
    wanted: tuple[str, ...], there: int, devices: tuple[str, ...]
) -> None:
    assert training_devices(wanted, there) == devices


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (("1",), "there is no CUDA device 1 that torch can use here"),
        (("0", "0"), "CUDA device 0 is named 2 times, and carries one rank"),
        (("cpu",) * 65, "a node has at most 64 ranks, not 65"),
    ],
)
def test_devices_that_cannot_be_had_are_named(wanted: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        training_devices(wanted, 1)


def test_each_rank_of_a_node_has_a_device_of_its_own() -> None:
    machine = Hardware("Linux", "x86_64", "a CPU", 8, 1 << 30, devices=("cuda:1", "cuda:3"))
    assert [device_of(machine, local) for local in range(3)] == ["cuda:1", "cuda:3", "cpu"]
    assert device_of(None, 0) == "cpu"
