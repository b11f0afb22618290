import random

import pytest

from jupiterd.cluster.planning.roles import (
    ALONE,
    GIB,
    PINNED,
    WRITTEN,
    Candidate,
    Role,
    assign,
    drained,
    estimated_speed,
)
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.ids import NodeId


def machine(
    name: str,
    cores: int = 8,
    gpus: tuple[Gpu, ...] = (),
    engines: tuple[str, ...] = ("torch",),
    program: str = "",
) -> Candidate:
    versions = (("jupiterd", program),) if program else ()
    hardware = Hardware(
        "Linux", "x86_64", "a CPU", cores, 16 * GIB, gpus, engines, versions=versions
    )
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
    assert "installers/install.sh --extra cpu" in found[NodeId("c")][1]
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


def test_a_command_to_do_nothing_counts_more_than_a_file_and_one_taken_back_too() -> None:
    a, b, c, d = map(NodeId, "abcd")
    pins, written = {a: "idle", b: "", c: "trainer"}, {b: "idle", c: "idle", d: "idle"}
    assert drained(pins, written) == {a, d}


@pytest.mark.parametrize(
    ("pin", "role", "reason"),
    [
        ("generator", Role.TRAINER, "the other node generates, so this one trains"),
        ("trainer", Role.HYBRID, "generates beside a pinned trainer"),
        ("hybrid", Role.HYBRID, "two nodes share everything"),
        ("idle", Role.HYBRID, "the only node that can work"),
    ],
)
def test_one_of_two_does_what_the_pinned_one_leaves_undone(
    pin: str, role: Role, reason: str
) -> None:
    found = assign([machine("a"), machine("b")], {NodeId("a"): pin})
    assert found[NodeId("b")][0] is role
    assert reason in found[NodeId("b")][1]


def test_beside_a_pinned_generator_nobody_else_has_to_generate() -> None:
    found = assign([machine("a"), machine("b"), machine("c")], {NodeId("a"): "generator"})
    expected = (Role.TRAINER, "estimated at 100% of the fastest that may train")
    assert [found[NodeId(name)] for name in "bc"] == [expected, expected]


def test_beside_pinned_trainers_the_slowest_that_is_free_generates_even_if_they_are_slower() -> (
    None
):
    candidates = [machine("a", 4), machine("b", 6), machine("c", 8)]
    found = assign(candidates, {NodeId("a"): "trainer"})
    assert found[NodeId("b")][0] is Role.GENERATOR
    assert "of those that aren't pinned" in found[NodeId("b")][1]
    assert found[NodeId("c")][0] is Role.TRAINER


def test_a_fast_machine_that_is_pinned_as_generator_makes_nobody_too_slow_to_train() -> None:
    fast = machine("a", gpus=(gpu("cuda", 24),))
    found = assign([fast, machine("b", 8), machine("c", 8)], {NodeId("a"): "generator"})
    assert {found[NodeId(name)][0] for name in "bc"} == {Role.TRAINER}


def test_a_pinned_generator_without_an_engine_does_not_count() -> None:
    candidates = [machine("a", engines=()), machine("b"), machine("c")]
    found = assign(candidates, {NodeId("a"): "generator"})
    assert found[NodeId("a")] == (Role.GENERATOR, PINNED)
    assert {found[NodeId(name)][0] for name in "bc"} == {Role.HYBRID}


def test_whoever_is_pinned_somebody_trains_and_somebody_generates() -> None:
    rng = random.Random(11)
    for _ in range(500):
        candidates = [machine(f"{n}", rng.randrange(1, 64)) for n in range(rng.randrange(1, 6))]
        pins = {c.node: rng.choice(["", *Role]) for c in candidates}
        found = assign(candidates, pins)
        assert set(found) == {c.node for c in candidates}
        if any(not pin for pin in pins.values()):
            done = {role for role, _ in found.values()}
            assert done & {Role.TRAINER, Role.HYBRID}, (candidates, pins, found)
            assert done & {Role.GENERATOR, Role.HYBRID}, (candidates, pins, found)


def test_a_written_role_counts_where_nobody_gave_a_command() -> None:
    written = {NodeId("a"): "generator", NodeId("c"): "trainer"}
    found = assign([machine("a"), machine("b"), machine("c")], {NodeId("c"): "idle"}, written)
    assert found[NodeId("a")] == (Role.GENERATOR, WRITTEN)
    assert found[NodeId("b")][0] is Role.TRAINER
    assert found[NodeId("c")] == (Role.IDLE, PINNED)


def test_leaving_it_to_the_leader_is_a_command_that_a_written_role_does_not_undo() -> None:
    me = NodeId("a")
    assert assign([machine("a")], {me: ""}, {me: "generator"}) == {me: ALONE}


def test_a_node_of_another_version_than_the_leader_is_idle_and_the_others_share_the_work() -> None:
    nodes = [machine("a", program="0.1.0"), machine("b", program="0.1.9")]
    found = assign([*nodes, machine("c", program="0.2.0")], program="0.1.0")
    assert {node: role for node, (role, _) in found.items()} == {
        "a": Role.HYBRID,
        "b": Role.HYBRID,
        "c": Role.IDLE,
    }
    assert "runs jupiterd 0.2.0 and the leader 0.1.0" in found[NodeId("c")][1]


def test_a_pin_does_not_let_work_cross_versions() -> None:
    pins = {NodeId("b"): "trainer"}
    nodes = [machine("a", program="0.1.0"), machine("b", program="0.2.0")]
    found = assign(nodes, pins, program="0.1.0")
    assert found[NodeId("b")][0] is Role.IDLE
    assert found[NodeId("a")] == ALONE
    alike = assign([machine("a", program="0.2.0"), nodes[1]], pins, program="0.2.0")
    assert alike[NodeId("b")] == (Role.TRAINER, PINNED)
