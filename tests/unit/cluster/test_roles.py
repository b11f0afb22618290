import random

import pytest

from jupiterd.cluster.hardware import Gpu, Hardware
from jupiterd.cluster.roles import GIB, PINNED, Candidate, Role, assign, estimated_speed
from jupiterd.ids import NodeId


def machine(
    name: str, cores: int = 8, gpus: tuple[Gpu, ...] = (), engines: tuple[str, ...] = ("torch",)
) -> Candidate:
    hardware = Hardware("Linux", "x86_64", "a CPU", cores, 16 * GIB, gpus, engines)
    return Candidate(NodeId(name), hardware)


def gpu(kind: str, gib: int) -> Gpu:
    return Gpu("a GPU", "uuid", gib * GIB, kind)


def roles(*candidates: Candidate) -> dict[str, Role]:
    return {str(node): role for node, (role, _) in assign(candidates).items()}


def test_one_node_does_both() -> None:
    assert roles(machine("a")) == {"a": Role.HYBRID}


def test_two_nodes_both_do_both_however_unlike() -> None:
    fast = machine("b", gpus=(gpu("cuda", 24),))
    assert roles(machine("a"), fast) == {"a": Role.HYBRID, "b": Role.HYBRID}


def test_of_three_equal_nodes_the_greatest_id_generates() -> None:
    assert roles(machine("c"), machine("a"), machine("b")) == {
        "a": Role.TRAINER,
        "b": Role.TRAINER,
        "c": Role.GENERATOR,
    }


def test_the_slowest_of_three_generates() -> None:
    assert roles(machine("a", 4), machine("b"), machine("c"))["a"] is Role.GENERATOR


def test_all_under_a_quarter_of_the_fastest_generate() -> None:
    fast = machine("a", gpus=(gpu("cuda", 24),))
    assert roles(fast, machine("b"), machine("c")) == {
        "a": Role.TRAINER,
        "b": Role.GENERATOR,
        "c": Role.GENERATOR,
    }


def test_a_quarter_of_the_fastest_is_fast_enough() -> None:
    found = roles(machine("a", 8), machine("b", 2), machine("c", 1))
    assert found == {"a": Role.TRAINER, "b": Role.TRAINER, "c": Role.GENERATOR}


def test_a_node_without_an_engine_is_idle_and_the_others_share_the_work() -> None:
    found = assign([machine("a"), machine("b"), machine("c", engines=())])
    assert found[NodeId("c")][0] is Role.IDLE
    assert "pip install" in found[NodeId("c")][1]
    assert found[NodeId("a")][0] is Role.HYBRID


def test_nobody_gets_nothing() -> None:
    assert assign([]) == {}


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (machine("a", 8), 8.0),
        (machine("a", 8, (gpu("cuda", 10),)), 168.0),
        (machine("a", 8, (gpu("cuda", 10), gpu("cuda", 10))), 328.0),
        (machine("a", 8, (gpu("cuda", 10),), ("mlx",)), 8.0),
        (machine("a", 8, (gpu("metal", 16),), ("mlx",)), 72.0),
        (machine("a", 8, (gpu("abacus", 16),)), 8.0),
    ],
)
def test_a_gpu_counts_where_an_engine_can_use_it(candidate: Candidate, expected: float) -> None:
    assert estimated_speed(candidate.hardware) == expected


def test_the_order_of_the_candidates_plays_no_part_and_every_reason_is_given() -> None:
    rng = random.Random(3)
    candidates = [machine(f"{number:02}", rng.randrange(1, 64)) for number in range(9)]
    expected = assign(candidates)
    rng.shuffle(candidates)
    assert assign(candidates) == expected
    assert all(reason for _, reason in expected.values())


def test_pins_come_first_and_the_others_share_what_is_left() -> None:
    roles = assign([machine("a"), machine("b"), machine("c")], {NodeId("a"): "idle"})
    assert roles[NodeId("a")] == (Role.IDLE, PINNED)
    assert {roles[NodeId(name)][0] for name in "bc"} == {Role.HYBRID}


def test_a_pin_that_was_taken_back_or_is_of_nobody_here_changes_nothing() -> None:
    candidates = [machine("a"), machine("b")]
    strange = {NodeId("a"): "", NodeId("x"): "idle", NodeId("b"): "a role of a newer version"}
    assert assign(candidates, strange) == assign(candidates)
