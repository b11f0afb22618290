"""The clocks of a gang, in a time of their own."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.training.gang_watchdog import (
    BEAT_S,
    DOUBT_S,
    DOUBT_STEPS_LONG,
    FIRST_BUSY_S,
    FIRST_STEP_S,
    FIRST_STEPS_LONG,
    LATE_S,
    LEAST_STEP_S,
    SILENT_S,
    STEPS_LONG,
    GangWatchdog,
    Silent,
    Stuck,
)

RANKS = 3


def watch() -> GangWatchdog:
    return GangWatchdog(RANKS, 0.0)


def look_until(
    gang: GangWatchdog, begin_s: float, end_s: float, *silent: int
) -> Silent | Stuck | None:
    """Look as often as a leader does; every rank beats but the silent ones."""
    now_s = begin_s
    while now_s < end_s:
        for rank in range(RANKS):
            if rank not in silent:
                gang.heard(rank, now_s)
        if verdict := gang.look(now_s):
            return verdict
        now_s += BEAT_S
    return None


def test_a_gang_that_is_heard_is_left_alone() -> None:
    assert look_until(watch(), 0.0, 1000.0) is None


@given(st.integers(0, RANKS - 1), st.floats(0.0, 100.0))
def test_a_silent_rank_is_lost_after_two_seconds_and_not_before(rank: int, at_s: float) -> None:
    gang = watch()
    assert look_until(gang, 0.0, at_s) is None
    gang.look(at_s)
    gang.heard(rank, at_s)
    verdict = look_until(gang, at_s, at_s + SILENT_S + 2 * BEAT_S, rank)
    assert isinstance(verdict, Silent)
    assert verdict.rank == rank
    assert SILENT_S <= verdict.for_s <= SILENT_S + BEAT_S + 1e-6


@given(st.floats(LATE_S + 0.01, 1e6))
def test_a_look_that_comes_late_accuses_nobody(late_s: float) -> None:
    gang = watch()
    assert look_until(gang, 0.0, 10.0) is None
    assert gang.look(10.0 + late_s) is None
    assert look_until(gang, 10.0 + late_s, 20.0 + late_s) is None


@given(st.floats(0.05, 60.0), st.integers(2, 30))
def test_a_step_that_takes_much_longer_than_usual_is_stuck(step_s: float, steps: int) -> None:
    gang, now_s = watch(), 0.0
    for step in range(1, steps + 1):
        assert look_until(gang, now_s, now_s + step_s) is None
        now_s += step_s
        gang.look(now_s)
        for rank in range(RANKS):
            gang.stepped(rank, step, now_s)
    limit_s = max(LEAST_STEP_S, STEPS_LONG * step_s)
    assert look_until(gang, now_s, now_s + limit_s - 2 * BEAT_S) is None
    verdict = look_until(gang, now_s + limit_s - 2 * BEAT_S, now_s + limit_s + 2 * BEAT_S)
    assert isinstance(verdict, Stuck)
    assert verdict.rank is None, "all wait in the same step"


def test_the_rank_that_is_a_step_behind_is_named() -> None:
    gang = watch()
    for step in (1, 2):
        for rank in range(RANKS):
            gang.stepped(rank, step, float(step))
    gang.stepped(0, 3, 3.0)
    gang.stepped(2, 3, 3.0)
    gang.look(3.0)
    verdict = look_until(gang, 3.0, 30.0)
    assert isinstance(verdict, Stuck)
    assert verdict.rank == 1


def test_the_first_step_may_take_as_long_as_it_takes() -> None:
    gang = watch()
    assert look_until(gang, 0.0, 300.0) is None
    gang.stepped(0, 1, 300.0)
    assert look_until(gang, 300.0, 600.0) is None


def test_who_hangs_while_it_is_busy_for_the_first_time_is_noticed_and_gets_longer_then() -> None:
    limit_s, longest_s = FIRST_BUSY_S, None
    for _ in range(2):
        gang = GangWatchdog(RANKS, 0.0, longest_busy_s=longest_s)
        now_s = stepping(gang, 1, 4, 0.0, 1.0)
        gang.busy(0, 3, now_s)
        assert look_until(gang, now_s, now_s + limit_s - 1.0) is None
        assert isinstance(look_until(gang, now_s + limit_s - 1.0, now_s + limit_s + 1.0), Stuck)
        longest_s, limit_s = gang.longest_busy_s, STEPS_LONG * FIRST_BUSY_S


def test_who_says_that_it_is_busy_may_take_long_at_first() -> None:
    gang = watch()
    now_s = stepping(gang, 1, 4, 0.0, 1.0)
    gang.busy(0, 3, now_s)
    assert look_until(gang, now_s, now_s + FIRST_BUSY_S - 2.0) is None
    now_s = stepping(gang, 4, 6, now_s + FIRST_BUSY_S - 2.0, 1.0)
    assert isinstance(look_until(gang, now_s, now_s + LEAST_STEP_S + 1.0), Stuck), "as before it"


@given(st.floats(0.05, 20.0), st.floats(0.1, 60.0), st.floats(0.0, 30.0))
def test_who_was_busy_before_may_be_as_long_again_and_not_for_ever(
    step_s: float, busy_s: float, save_s: float
) -> None:
    gang = GangWatchdog(RANKS, 0.0, save_s)
    now_s = stepping(gang, 1, 5, 0.0, step_s)
    gang.busy(0, 4, now_s)
    assert look_until(gang, now_s, now_s + busy_s) is None
    now_s = stepping(gang, 5, 9, now_s + busy_s, step_s)
    gang.busy(0, 8, now_s)
    took_s = busy_s + step_s
    assert look_until(gang, now_s, now_s + 4 * took_s) is None
    limit_s = save_s + STEPS_LONG * max(took_s, step_s, LEAST_STEP_S / STEPS_LONG)
    assert isinstance(look_until(gang, now_s + 4 * took_s, now_s + limit_s + 1.0), Stuck)


@given(
    st.floats(0.02, 30.0),
    st.lists(
        st.tuples(st.floats(0.4, 1.6), st.sampled_from(["", "", "", "saves", "scores", "late"])),
        min_size=8,
        max_size=40,
    ),
    st.floats(0.0, 200.0),
)
def test_no_step_that_is_long_by_nature_is_taken_for_one_that_stands(
    step_s: float, steps: list[tuple[float, str]], long_s: float
) -> None:
    """Steps vary fourfold; saving, scoring and a late rank's start take what they take."""
    gang = GangWatchdog(RANKS, 0.0, long_s)
    took_s = {"": 0.0, "saves": long_s, "scores": long_s / 2, "late": long_s}
    now_s = 300.0 + long_s  # a first step compiles
    assert look_until(gang, 0.0, now_s) is None
    for number, (share, what) in enumerate(steps, 1):
        for rank in range(RANKS):
            gang.stepped(rank, number, now_s)
        if what:
            gang.busy(0, number, now_s)
        end_s = now_s + step_s * share + took_s[what]
        assert look_until(gang, now_s, end_s) is None
        now_s = end_s
        gang.look(now_s)


def test_a_rank_that_has_come_to_its_end_is_waited_for_no_more() -> None:
    gang = watch()
    assert look_until(gang, 0.0, 5.0) is None
    gang.ended(1)
    assert look_until(gang, 5.0, 60.0, 1) is None
    verdict = look_until(gang, 60.0, 70.0, 1, 2)
    assert isinstance(verdict, Silent)
    assert (verdict.rank, verdict.others) == (2, ())


def test_all_that_fall_silent_together_are_lost_together() -> None:
    gang = watch()
    assert look_until(gang, 0.0, 5.0) is None
    assert look_until(gang, 5.0, 5.9, 1) is None
    verdict = look_until(gang, 5.9, 10.0, 1, 2)
    assert isinstance(verdict, Silent)
    assert (verdict.rank, verdict.others) == (1, (2,))


def test_whoever_was_heard_a_moment_ago_is_not_lost_with_another() -> None:
    gang = watch()
    assert look_until(gang, 0.0, 5.0) is None
    assert look_until(gang, 5.0, 6.5, 1) is None
    verdict = look_until(gang, 6.5, 10.0, 1, 2)
    assert isinstance(verdict, Silent)
    assert (verdict.rank, verdict.others) == (1, ())


def test_a_gang_that_has_come_to_its_end_is_waited_for_no_more() -> None:
    gang = watch()
    for step in (1, 2):
        gang.look(float(step))
        gang.stepped(0, step, float(step))
    for rank in range(RANKS):
        gang.ended(rank)
    assert look_until(gang, 2.0, 100.0, *range(RANKS)) is None
    assert doubts(gang, 100.0, 200.0) == []


def doubts(gang: GangWatchdog, begin_s: float, end_s: float) -> list[float]:
    """Return when the gang is in doubt, as it is looked at for a while."""
    looks = [begin_s + number * BEAT_S for number in range(int((end_s - begin_s) / BEAT_S))]
    return [now_s for now_s in looks if gang.is_in_doubt(now_s)]


def test_a_gang_that_does_not_form_is_looked_into_soon_and_then_ever_more_rarely() -> None:
    found = doubts(watch(), 0.0, 60.0)
    assert DOUBT_S <= found[0] < DOUBT_S + 2 * BEAT_S
    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert gaps == sorted(gaps)
    assert len(found) < 7


@given(st.floats(0.05, 60.0))
def test_a_gang_that_trains_as_it_does_is_not_in_doubt_and_one_that_stops_is(step_s: float) -> None:
    gang = watch()
    for rank in range(RANKS):
        gang.joined(rank, 0.0)
    for step in range(1, 5):
        if step > 2:
            assert doubts(gang, step_s * (step - 1), step_s * step) == []
        gang.stepped(0, step, step_s * step)
    found = doubts(gang, 4 * step_s, 10 * step_s + 2 * DOUBT_S)
    assert found[0] - 4 * step_s >= max(DOUBT_S, DOUBT_STEPS_LONG * step_s)
    assert found[0] - 4 * step_s < max(DOUBT_S, DOUBT_STEPS_LONG * step_s) + 2 * BEAT_S


def test_a_step_after_a_doubt_makes_all_well_again() -> None:
    gang = watch()
    assert doubts(gang, 0.0, 20.0)
    gang.joined(1, 20.0)
    assert doubts(gang, 20.0, 20.0 + DOUBT_S - BEAT_S) == []
    assert doubts(gang, 20.0 + DOUBT_S - BEAT_S, 20.0 + DOUBT_S + 4 * BEAT_S)


def test_a_look_that_comes_late_gives_the_doubts_their_time_back() -> None:
    gang = watch()
    gang.look(0.5)
    gang.look(9.5)
    assert not gang.is_in_doubt(9.6)


def stepping(gang: GangWatchdog, first: int, end: int, begin_s: float, step_s: float) -> float:
    """Let all ranks finish these steps, and return when they have."""
    for number, step in enumerate(range(first, end), 1):
        assert look_until(gang, begin_s + (number - 1) * step_s, begin_s + number * step_s) is None
        for rank in range(RANKS):
            gang.stepped(rank, step, begin_s + number * step_s)
    return begin_s + (end - first) * step_s


def test_who_waits_for_other_islands_is_not_stuck_and_not_in_doubt() -> None:
    gang = watch()
    now_s = stepping(gang, 1, 11, 0.0, 0.5)
    gang.waits()
    assert look_until(gang, now_s, now_s + 1000.0) is None
    assert not gang.is_in_doubt(now_s + 1000.0)
    verdict = look_until(gang, now_s + 1000.0, now_s + 1010.0, 1)
    assert isinstance(verdict, Silent), "its node must be heard all the same"


def test_after_a_wait_a_step_may_take_as_long_as_before_it() -> None:
    gang = watch()
    now_s = stepping(gang, 1, 11, 0.0, 4.0)
    gang.waits()
    assert look_until(gang, now_s, now_s + 300.0) is None
    now_s = stepping(gang, 111, 112, now_s + 300.0, 4.0)  # it has caught up with the others
    assert look_until(gang, now_s, now_s + 4.0 * STEPS_LONG - 1.0) is None
    assert isinstance(look_until(gang, now_s + 19.0, now_s + 21.0), Stuck)


def beginning(first_step_s: float | None, at_s: float = 100.0) -> GangWatchdog:
    """A gang whose ranks have loaded for long, and begin their first step after the 40th."""
    gang = GangWatchdog(RANKS, 0.0, first_step_s=first_step_s)
    for rank in range(RANKS):
        gang.joined(rank, 1.0)
    assert look_until(gang, 1.0, at_s) is None, "loading is no step"
    gang.busy(0, 40, at_s)  # it scores text first
    for rank in range(RANKS):
        gang.begins(rank, 40, at_s)
    return gang


@given(st.floats(0.01, 100.0))
def test_a_first_step_gets_far_more_than_is_foretold_and_then_ends_the_gang(foretold_s: float):
    limit_s = max(FIRST_STEP_S, FIRST_STEPS_LONG * foretold_s)
    gang = beginning(foretold_s)
    verdict = look_until(gang, 100.0, 100.0 + limit_s + 2 * BEAT_S)
    assert isinstance(verdict, Stuck)
    assert limit_s <= verdict.for_s <= limit_s + 2 * BEAT_S
    assert verdict.rank is None


def test_a_look_that_comes_late_gives_a_first_step_its_time_back():
    gang = beginning(0.5)
    assert gang.look(100.0 + 3 * FIRST_STEP_S) is None
    assert look_until(gang, 160.0, 159.0 + FIRST_STEP_S) is None


def test_a_first_step_of_which_nothing_is_foretold_may_take_any_time():
    assert look_until(beginning(None), 100.0, 5000.0) is None


def test_a_first_step_is_not_judged_before_all_ranks_have_begun_it():
    gang = GangWatchdog(RANKS, 0.0, first_step_s=0.1)
    for rank in range(RANKS - 1):
        gang.begins(rank, 0, 1.0)
    assert look_until(gang, 1.0, 1000.0) is None


def test_a_slow_machine_loses_one_gang_to_it_and_no_more():
    gang = beginning(0.5)
    assert look_until(gang, 100.0, 200.0) is not None
    assert gang.next_first_step_s(0.5) is None, "the next one gets its time"
    slow = beginning(None)
    for step in range(41, 44):
        slow.stepped(0, step, 100.0 + 30.0 * (step - 40))
    assert slow.next_first_step_s(0.5) == 30.0, "as it was measured"
    assert watch().next_first_step_s(0.5) == 0.5
    assert watch().next_first_step_s(None) is None


def test_the_second_step_is_judged_as_the_first_until_one_is_usual():
    gang = beginning(0.1)
    gang.stepped(0, 41, 110.0)
    assert look_until(gang, 110.0, 110.0 + FIRST_STEP_S - 1.0) is None
    gang.stepped(0, 42, 129.0)
    gang.stepped(0, 43, 129.5)
    for step in range(44, 60):
        gang.stepped(0, step, 129.5 + 0.1 * (step - 43))
    verdict = look_until(gang, 131.1, 200.0)
    assert isinstance(verdict, Stuck)
    assert verdict.for_s < FIRST_STEP_S, "by what is usual now"
