"""Who is taken into a gang that trains, and when."""

from jupiterd.cluster.training.scale_policy import (
    AGAIN_S,
    FORGIVES_S,
    LEAST_ATTEMPT_S,
    MAX_SETTLE_S,
    SETTLE_S,
    ScalePolicy,
)
from jupiterd.ids import NodeId

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
PAIR, ALL = frozenset({A, B}), frozenset({A, B, C})
NOBODY: frozenset[NodeId] = frozenset()


def taken_in_after_s(scale_policy: ScalePolicy, from_s: float, limit_s: float = 2000.0) -> float:
    """Look once a second while all three are fit; return the seconds until C is taken in."""
    now_s = from_s
    while now_s < from_s + limit_s:
        if scale_policy.look(ALL, now_s):
            return now_s - from_s
        now_s += 1.0
    raise AssertionError("never")


def test_a_gang_of_all_who_are_fit_is_left_alone() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(ALL, 0.0)
    assert all(scale_policy.look(ALL, float(now_s)) == NOBODY for now_s in range(1000))


def test_a_node_that_comes_is_taken_in_once_it_has_settled() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(PAIR, 0.0)
    assert all(scale_policy.look(PAIR, float(now_s)) == NOBODY for now_s in range(100))
    assert taken_in_after_s(scale_policy, 100.0) == SETTLE_S


def test_no_attempt_is_ended_that_has_only_just_begun() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(PAIR, 50.0)
    assert taken_in_after_s(scale_policy, 50.0) == LEAST_ATTEMPT_S


def test_a_node_that_comes_and_goes_in_between_has_not_settled() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(PAIR, 0.0)
    for now_s in range(100):
        assert scale_policy.look(ALL if now_s % 4 else PAIR, float(now_s)) == NOBODY


def visited(scale_policy: ScalePolicy, from_s: float, stays_s: float, times: int) -> list[float]:
    """Let C train along for a while, again and again; return how long it had to wait in between."""
    now_s, waits = from_s, list[float]()
    for _ in range(times):
        scale_policy.begin(ALL, now_s)
        scale_policy.begin(PAIR, now_s + stays_s)
        now_s += stays_s + LEAST_ATTEMPT_S
        waits.append(taken_in_after_s(scale_policy, now_s))
        now_s += waits[-1]
    return waits


def test_one_that_keeps_leaving_waits_longer_each_time_and_a_minute_at_most() -> None:
    waits = visited(ScalePolicy(), 0.0, stays_s=1.0, times=9)
    assert waits == sorted(waits)
    assert 2 * SETTLE_S - 1.0 <= waits[0] <= 2 * SETTLE_S
    assert waits[-1] == MAX_SETTLE_S <= 60.0


def test_half_a_minute_of_training_makes_up_for_having_been_lost_once() -> None:
    assert visited(ScalePolicy(), 0.0, stays_s=FORGIVES_S, times=9) == [SETTLE_S] * 9


def test_one_that_was_often_away_is_trusted_again_after_two_quiet_minutes() -> None:
    scale_policy = ScalePolicy()
    visited(scale_policy, 0.0, stays_s=1.0, times=9)
    scale_policy.begin(ALL, 5000.0)
    scale_policy.begin(PAIR, 5000.0 + 5 * FORGIVES_S)
    assert taken_in_after_s(scale_policy, 5000.0 + 5 * FORGIVES_S + LEAST_ATTEMPT_S) == SETTLE_S


def test_one_that_can_not_be_met_is_left_out_and_tried_again_until_it_can() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(PAIR, 0.0)
    now_s = LEAST_ATTEMPT_S + SETTLE_S
    for _ in range(20):
        scale_policy.leave_out(C, now_s)
        assert scale_policy.left_out == {C}
        waited_s = taken_in_after_s(scale_policy, now_s)
        assert waited_s <= AGAIN_S
        assert not any(scale_policy.look(ALL, now_s + s) for s in range(int(waited_s)))
        now_s += waited_s
    assert scale_policy.look(ALL, now_s) == {C}
    scale_policy.admit(C)
    assert scale_policy.left_out == NOBODY


def test_one_that_was_left_out_stays_so_through_attempts() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(ALL, 0.0)
    scale_policy.leave_out(C, 20.0)
    scale_policy.begin(PAIR, 21.0)
    scale_policy.begin(frozenset({A}), 22.0)
    assert scale_policy.left_out == {C}


def test_that_one_can_not_be_met_is_news_once() -> None:
    scale_policy = ScalePolicy()
    scale_policy.begin(PAIR, 0.0)
    assert [scale_policy.leave_out(C, float(now_s)) for now_s in range(3)] == [True, False, False]
    scale_policy.admit(C)
    assert scale_policy.leave_out(C, 4.0), "it was well in between"
