"""How fast artifacts are sent beside everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.artifacts.send_pace import BURST_S, LEAST_PART_BYTES, MAX_PAUSE_S, SendPace


def test_without_a_rate_and_a_gang_nothing_waits() -> None:
    assert SendPace(0, 0.5).pause_s(0.0, 1 << 30, 9.0, trains=False) == 0.0


@given(st.lists(st.tuples(st.integers(1, 1 << 20), st.floats(0, 0.3)), min_size=1, max_size=50))
def test_in_the_long_run_no_more_is_sent_than_the_rate(parts: list[tuple[int, float]]) -> None:
    rate, pace, now_s = 1e6, SendPace(1e6, 1.0), 100.0
    began_s = now_s
    for size_bytes, took_s in parts:
        now_s += took_s
        now_s += pace.pause_s(now_s, size_bytes, took_s, trains=False)
    sent = sum(size for size, _ in parts)
    assert sent <= rate * (now_s - began_s + BURST_S) * 1.001


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_while_a_gang_runs_artifacts_have_their_share_of_the_time(share: float) -> None:
    pace, busy_s, now_s = SendPace(0, share), 0.0, 0.0
    for _ in range(100):
        now_s += 0.01
        busy_s += 0.01
        now_s += pace.pause_s(now_s, 1 << 20, 0.01, trains=True)
    assert busy_s / now_s == pytest.approx(share, rel=0.01)


def test_a_link_that_was_stuck_is_not_left_alone_for_as_long_again() -> None:
    assert SendPace(0, 0.1).pause_s(0.0, 1, 60.0, trains=True) == MAX_PAUSE_S


@pytest.mark.parametrize("mbit_per_s", [1, 10, 100])
def test_of_many_transfers_at_a_rate_none_waits_for_long(mbit_per_s: int) -> None:
    pace = SendPace(mbit_per_s * 125_000, 1.0)
    part_bytes = pace.part_bytes(1 << 20)
    pauses_s = [pace.pause_s(0.0, part_bytes, 0.0, trains=False) for _ in range(12)]
    assert max(pauses_s) < 2.0


def test_parts_are_as_large_as_asked_where_no_rate_is_set_and_never_tiny() -> None:
    assert SendPace(0, 1.0).part_bytes(1 << 20) == 1 << 20
    assert SendPace(1e12, 1.0).part_bytes(1 << 20) == 1 << 20
    assert SendPace(1.0, 1.0).part_bytes(1 << 20) == LEAST_PART_BYTES
