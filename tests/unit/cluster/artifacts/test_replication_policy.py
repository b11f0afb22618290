"""What must lie on two nodes, and who takes the second copy."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.artifacts.replication_policy import (
    LITTLE_BYTES,
    MAX_AT_ONCE,
    Copy,
    Holder,
    copies_to_make,
    in_work,
    of_record,
    spare,
    takers,
)
from jupiterd.cluster.facts.facts import CycleFailed, CycleStateSet, ManifestFrozen
from jupiterd.ids import ArtifactId, CycleId, NodeId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    outer_step,
    started,
    training,
    work_done,
)
from tests.unit.cluster.artifacts.test_retention import line, run_of

ROOM_BYTES = 10 * LITTLE_BYTES
ARTIFACTS = [ArtifactId(f"artifact{number}") for number in range(8)]


def holder(
    number: int, *held: ArtifactId, role: str = "hybrid", free_bytes: int = ROOM_BYTES
) -> Holder:
    return Holder(NODES[number], role, frozenset(held), free_bytes)


def test_checkpoints_that_are_kept_and_what_rounds_train_on_are_of_record() -> None:
    shards = (ArtifactId("s1"), ArtifactId("s2"))
    manifest = ManifestFrozen(CYCLE, 1, "", ArtifactId("tok"), shards, 10, 1000)
    assert of_record({CYCLE: run_of(*line(5), manifest)}) == {"k3", "k4", "k5", "tok", "s1", "s2"}
    other = run_of(checkpoint("k1", "", tokens=7))
    assert "k1" in of_record({CYCLE: run_of(*line(5)), CycleId("other"): other})
    assert of_record({}) == frozenset()


def test_what_an_island_saves_on_the_way_is_of_record_where_no_other_has_its_weights() -> None:
    name = CycleId("e" * 16)
    started = replace(training(), cycle=name, parent=CYCLE)
    saved = [replace(each, cycle=name) for each in line(2)]
    island = run_of(started, *saved, replace(checkpoint("end", "k2", tokens=900), is_final=True))
    alone = outer_step(0)
    both = replace(alone, islands=(name, CycleId("f" * 16)))
    for taken, kept in ((alone, {"k1", "k2", "end"}), (both, {"end"})):
        assert of_record({CYCLE: run_of(training(), taken), name: island}) == kept
    begun = replace(both, islands=(), batches={name: 4, "f" * 16: 4})
    assert of_record({CYCLE: run_of(training(), begun), name: island}) == {"end"}


def test_what_work_of_a_run_that_goes_on_has_made_is_of_record_until_it_is_over() -> None:
    collected = replace(
        work_done("collect"), outputs={"holdout": ArtifactId("h"), "state": ArtifactId("s")}
    )
    run = run_of(training(), collected)
    assert of_record({CYCLE: run}) == {"h", "s"}
    run.apply(CycleFailed(CYCLE, "full", "no room", ""), (1, NODES[0], "u", 9))
    assert of_record({CYCLE: run}) == frozenset()


def test_the_base_of_an_adapter_is_of_record_as_long_as_its_run_is_known() -> None:
    base = ArtifactId("b" * 64)
    settings = {**training().settings, "start_from": base}
    adapted = run_of(replace(training(), settings={**settings, "lora": "rank=16"}), *line(2))
    whole = run_of(replace(training(), settings=settings), *line(2))
    for run in (adapted, whole):
        run.apply(CycleFailed(CYCLE, "full", "no room", ""), (1, NODES[0], "u", 9))
    assert base in of_record({CYCLE: adapted})
    assert base not in of_record({CYCLE: whole})


def test_so_is_that_of_the_adapters_of_a_cycle_s_rounds_and_of_their_islands() -> None:
    base, before = ArtifactId("b" * 64), ArtifactId("c" * 64)
    begun = replace(started(), settings={"start_from": base, "lora": "rank=16"})
    later = {**training().settings, "start_from": base, "lora": "rank=16", "adapter_from": before}
    for run in (run_of(begun), run_of(replace(training(), settings=later))):
        run.apply(CycleFailed(CYCLE, "full", "no room", ""), (1, NODES[0], "u", 9))
        assert base in of_record({CYCLE: run})
    assert before in of_record({CYCLE: run})


def test_what_one_node_alone_has_goes_to_another() -> None:
    one, two = ARTIFACTS[:2]
    holders = [holder(0, one, two), holder(1, two)]
    assert copies_to_make([one, two], holders) == [Copy(one, NODES[1])]
    assert copies_to_make([one], holders[:1]) == []
    assert copies_to_make([ARTIFACTS[3]], holders) == []


def test_who_works_on_it_comes_first_and_who_has_little_room_never() -> None:
    one, *_ = ARTIFACTS
    idle, busy = holder(1, role="idle", free_bytes=2 * ROOM_BYTES), holder(2)
    assert copies_to_make([one], [holder(0, one), idle, busy]) == [Copy(one, NODES[2])]
    full = replace(busy, free_bytes=LITTLE_BYTES - 1)
    assert copies_to_make([one], [holder(0, one), idle, full]) == [Copy(one, NODES[1])]
    assert copies_to_make([one], [holder(0, one), full]) == []


def test_who_refused_is_not_asked_again() -> None:
    one, *_ = ARTIFACTS
    holders = [holder(0, one), holder(1), holder(2)]
    (first,) = copies_to_make([one], holders)
    (second,) = copies_to_make([one], holders, [first])
    assert first.to != second.to
    assert copies_to_make([one], holders, [first, second]) == []


def test_many_copies_are_shared_out_and_bounded() -> None:
    many = [ArtifactId(f"{number:03}") for number in range(100)]
    found = copies_to_make(many, [holder(0, *many), holder(1), holder(2)])
    assert len(found) == MAX_AT_ONCE
    assert sum(copy.to == NODES[1] for copy in found) == MAX_AT_ONCE // 2


@given(st.lists(st.sets(st.sampled_from(ARTIFACTS)), min_size=2, max_size=3))
def test_once_the_copies_are_made_nothing_more_is_to_do(held: list[set[ArtifactId]]) -> None:
    holders = [holder(number, *each) for number, each in enumerate(held)]
    for copy in copies_to_make(ARTIFACTS, holders):
        holders = [
            replace(each, artifacts=each.artifacts | {copy.artifact})
            if each.node == copy.to
            else each
            for each in holders
        ]
    assert copies_to_make(ARTIFACTS, holders) == []
    for artifact in set().union(*held):
        assert sum(artifact in each.artifacts for each in holders) >= 2


def test_who_has_little_room_takes_what_was_just_made_last_or_not_at_all() -> None:
    little = holder(0, free_bytes=LITTLE_BYTES - 1)
    idle, hybrid = holder(1, role="idle", free_bytes=2 * ROOM_BYTES), holder(2)
    asked = [little, idle, hybrid]
    assert takers(asked, only_with_room=True) == [NODES[2], NODES[1]]
    assert takers(asked, only_with_room=False) == [NODES[2], NODES[1], NODES[0]]
    assert takers([little], only_with_room=True) == []


def test_what_work_that_goes_on_names_is_needed() -> None:
    going_on, over = run_of(training(), checkpoint("k1")), run_of(training(), checkpoint("k2"))
    over.apply(CycleFailed(CYCLE, "full", "no room", ""), (1, NODES[0], "u", 9))
    named = in_work([going_on, over])
    assert "k1" in named
    assert "k2" not in named


@given(st.lists(st.tuples(st.sets(st.sampled_from(ARTIFACTS)), st.booleans()), max_size=5))
def test_however_many_give_up_copies_at_once_two_are_left(
    nodes: list[tuple[set[ArtifactId], bool]],
) -> None:
    holders = [
        Holder(NodeId(str(number)), "", frozenset(held), ROOM_BYTES if roomy else 0)
        for number, (held, roomy) in enumerate(nodes)
    ]
    left = [
        each.artifacts
        if each.free_bytes
        else each.artifacts - {*spare(each.artifacts, others(holders, each))}
        for each in holders
    ]
    for artifact in ARTIFACTS:
        before = sum(artifact in each.artifacts for each in holders)
        assert sum(artifact in held for held in left) >= min(2, before)


def others(holders: list[Holder], but: Holder) -> list[Holder]:
    return [each for each in holders if each is not but]


def test_a_cycles_own_questions_are_of_record_when_it_is_over_too() -> None:
    asks = replace(started(), settings={"questions": "own"})
    for over in ((), (CycleStateSet(CYCLE, "stopped", "", 1),)):
        assert "own" in of_record({CYCLE: run_of(asks, *over)})
