"""How often the state is copied follows from what a copy and a step take."""

from itertools import pairwise

import pytest

from jupiterd.cycle.base.snapshot_pace import (
    COPIES,
    SPEED_SHARE,
    TRIALS,
    SnapshotPace,
    expected_copy_s,
    has_room,
    steps_between,
)


@pytest.mark.parametrize(
    ("copy_s", "step_s", "every"),
    [
        (0.02, 1.0, 1),
        (0.0201, 1.0, 2),
        (0.001, 1.0, 1),
        (1.0, 0.5, 100),
        (0.03, 0.1, 15),
        (0.0, 1.0, 1),
        (1.0, 0.0, 1),
    ],
)
def test_a_copy_is_made_as_often_as_two_percent_buys(
    copy_s: float, step_s: float, every: int
) -> None:
    assert steps_between(copy_s, step_s) == every


@pytest.mark.parametrize("step_s", [0.004, 0.1, 3.0])
@pytest.mark.parametrize("copy_s", [0.0005, 0.04, 1.3])
def test_copies_cost_no_more_than_their_share_and_are_no_rarer_than_that(
    copy_s: float, step_s: float
) -> None:
    every = steps_between(copy_s, step_s)
    assert copy_s / (every * step_s) <= SPEED_SHARE + 1e-12
    assert every == 1 or copy_s / ((every - 1) * step_s) > SPEED_SHARE


def run(pace: SnapshotPace, steps: int, step_s: float, copies_s: list[float]) -> list[int]:
    """Return after which steps a copy is made; its times are taken by turns, the last one stays."""
    made: list[int] = []
    for step in range(1, steps + 1):
        pace.stepped(step_s)
        if pace.is_due:
            pace.begun()
            pace.copied(copies_s.pop(0) if len(copies_s) > 1 else copies_s[0])
            made.append(step)
    return made


def test_what_is_cheap_is_copied_after_each_step() -> None:
    assert run(SnapshotPace(), 30, 1.0, [0.01]) == [*range(1, 31)]


def test_the_first_copies_touch_new_memory_and_soon_don_t_count() -> None:
    pace = SnapshotPace()
    made = run(pace, 40, 1.0, [0.15, 0.15, 0.01])
    assert made == [*range(1, 41)], "a trial may take a fifth of a step"
    assert pace.every_steps == 1


def test_what_takes_long_is_copied_rarely() -> None:
    pace = SnapshotPace()
    made = run(pace, 1000, 0.1, [0.5])
    assert pace.every_steps == 250
    gaps = [after - before for before, after in pairwise(made)]
    assert gaps[: TRIALS - 1] == [25] * (TRIALS - 1)
    assert set(gaps[TRIALS - 1 :]) == {250}


def test_one_long_step_or_copy_among_many_changes_nothing() -> None:
    pace = SnapshotPace()
    run(pace, 20, 1.0, [0.015])
    pace.stepped(60.0)
    pace.copied(2.0)
    assert pace.every_steps == 1


def test_both_copies_must_find_room_beside_what_is_still_needed() -> None:
    assert has_room(10 + COPIES * 7, 10, 7)
    assert not has_room(9 + COPIES * 7, 10, 7)
    assert expected_copy_s(2_000_000_000) == 2.0
