"""Who is taken into a gang that trains, and when."""

from jupiterd.cluster.gang_growth import (
    FICKLE_S,
    LEAST_EPOCH_S,
    MAX_SETTLE_S,
    SETTLE_S,
    GangGrowth,
)
from jupiterd.ids import NodeId

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
PAIR, ALL = frozenset({A, B}), frozenset({A, B, C})
NOBODY: frozenset[NodeId] = frozenset()


def taken_in_after_s(growth: GangGrowth, from_s: float, limit_s: float = 2000.0) -> float:
    """Look once a second while all three are fit; return the seconds until C is taken in."""
    now_s = from_s
    while now_s < from_s + limit_s:
        if growth.look(ALL, now_s):
            return now_s - from_s
        now_s += 1.0
    raise AssertionError("never")


def test_a_gang_of_all_who_are_fit_is_left_alone() -> None:
    growth = GangGrowth()
    growth.begin(ALL, 0.0)
    assert all(growth.look(ALL, float(now_s)) == NOBODY for now_s in range(1000))


def test_a_node_that_comes_is_taken_in_once_it_has_settled() -> None:
    growth = GangGrowth()
    growth.begin(PAIR, 0.0)
    assert all(growth.look(PAIR, float(now_s)) == NOBODY for now_s in range(100))
    assert taken_in_after_s(growth, 100.0) == SETTLE_S


def test_no_epoch_is_ended_that_has_only_just_begun() -> None:
    growth = GangGrowth()
    growth.begin(PAIR, 50.0)
    assert taken_in_after_s(growth, 50.0) == LEAST_EPOCH_S


def test_a_node_that_comes_and_goes_in_between_has_not_settled() -> None:
    growth = GangGrowth()
    growth.begin(PAIR, 0.0)
    for now_s in range(100):
        assert growth.look(ALL if now_s % 4 else PAIR, float(now_s)) == NOBODY


def test_one_that_keeps_leaving_waits_longer_each_time_and_a_steady_one_does_not() -> None:
    growth, now_s, waits = GangGrowth(), 0.0, list[float]()
    for _ in range(9):
        growth.begin(ALL, now_s)
        growth.begin(PAIR, now_s + 1.0)
        now_s += 1.0 + LEAST_EPOCH_S
        waits.append(taken_in_after_s(growth, now_s))
        now_s += waits[-1]
    assert waits[:3] == [2 * SETTLE_S, 4 * SETTLE_S, 8 * SETTLE_S]
    assert waits[-1] == MAX_SETTLE_S
    growth.begin(ALL, now_s)
    growth.begin(PAIR, now_s + FICKLE_S)
    assert taken_in_after_s(growth, now_s + FICKLE_S + LEAST_EPOCH_S) == SETTLE_S
