"""Who is waited for, and who counts."""

import math

from jupiterd.cluster.training.gang_watchdog import SILENT_S
from jupiterd.cycle.islands.outer_round import (
    FIRST_GRACE,
    GRACE,
    LEAST_FIRST_GRACE_S,
    LEAST_GRACE_S,
    LOST_GRACE_S,
    OVERLAPPED_GRACE,
    Closing,
    OuterRound,
)
from jupiterd.daemon.gangs.surviving_states import LEAST_S
from jupiterd.protocol.training_values import PseudoGradient

ISLANDS = ("a", "b", "c")


def in_round(*pseudo_gradients: tuple[str, float], is_first: bool = False) -> OuterRound:
    """A round that began at 0, and in which these islands came in at these times."""
    round_ = OuterRound(ISLANDS, is_first=is_first)
    for island, at_s in pseudo_gradients:
        round_.arrived(island, PseudoGradient("", 100, 1.0, at_s), at_s)
    return round_


def test_it_closes_at_once_when_all_are_in():
    round_ = in_round(("c", 90.0), ("a", 95.0))
    assert round_.closing(95.0) is None
    round_.arrived("b", PseudoGradient("", 300, 1.0), 96.0)
    assert round_.closing(96.0) == Closing(("a", "b", "c"), (100, 300, 100))


def test_ways_are_as_weighty_as_the_tokens_that_their_losses_count():
    round_ = OuterRound(ISLANDS)
    for island, counted in zip(ISLANDS, (40, 80, 20), strict=True):
        round_.arrived(island, PseudoGradient("", 100, 1.0, counted=counted), 9.0)
    closing = round_.closing(9.0)
    assert closing == Closing(ISLANDS, (100, 100, 100), weights=(40, 80, 20))
    assert closing.without({"b"}).weights == (40, 20)
    old = OuterRound(("a", "b"))
    for island, counted in (("a", 40), ("b", 0)):  # of an older build, which tells none
        old.arrived(island, PseudoGradient("", 100, 1.0, counted=counted), 9.0)
    assert old.closing(9.0) == Closing(("a", "b"), (100, 100))


def test_a_slow_island_is_waited_for_a_share_of_the_rounds_time():
    round_ = in_round(("a", 100.0), ("b", 101.0))
    assert round_.closing(100.0 + 100.0 * GRACE - 0.1) is None
    assert round_.closing(100.0 + 100.0 * GRACE) == Closing(("a", "b"), (100, 100), (), ("c",))


def test_where_nobody_waits_one_that_is_a_round_behind_the_first_is_not_late():
    overlapped = OuterRound(("a", "b"), lag=2, opened_s=90.0)  # b was in with the round before then
    overlapped.arrived("a", PseudoGradient("", 100, 1.0, 100.0), 95.0)
    in_time_s = 90.0 + 100.0 * (1 + OVERLAPPED_GRACE)
    assert overlapped.closing(in_time_s - 0.1) is None
    assert overlapped.closing(in_time_s) == Closing(("a",), (100,), (), ("b",))
    overlapped.arrived("b", PseudoGradient("", 100, 1.0, 100.0), in_time_s - 0.1)
    assert overlapped.closing(in_time_s - 0.1) == Closing(("a", "b"), (100, 100))


def test_whoever_waits_for_the_others_has_only_the_grace_to_wait():
    blocking = OuterRound(("a", "b"), opened_s=90.0)  # another leader has opened it in its midst
    blocking.arrived("a", PseudoGradient("", 100, 1.0, 100.0), 95.0)
    assert blocking.closing(95.0 + 100.0 * GRACE) is not None


def test_a_gang_that_is_formed_anew_in_a_short_round_is_waited_for():
    round_ = in_round(("a", 3.0), ("b", 3.0))
    assert LEAST_GRACE_S >= 2 * SILENT_S + LEAST_S  # noticed, its last step kept, and begun anew
    assert round_.closing(3.0 + LEAST_GRACE_S - 0.1) is None
    assert round_.closing(3.0 + LEAST_GRACE_S) is not None


def test_nothing_closes_before_anybody_is_in():
    assert OuterRound(ISLANDS).closing(1e9) is None


def test_nobody_waits_for_an_island_that_is_lost():
    round_ = in_round(("a", 10.0), ("b", 10.5))
    round_.set_lost({"c"})
    assert round_.closing(10.5) == Closing(("a", "b"), (100, 100), (), ("c",))


def test_one_that_was_lost_and_is_back_in_time_is_waited_for():
    round_ = in_round(("a", 10.0), ("b", 10.5))
    round_.set_lost({"c"})
    round_.set_lost(set())
    assert round_.closing(10.6) is None


def test_in_the_first_round_one_that_takes_ten_times_as_long_is_waited_for():
    round_ = in_round(("a", 100.0), ("b", 101.0), is_first=True)
    assert round_.closing(999.0) is None
    assert round_.closing(100.0 + 100.0 * FIRST_GRACE) is not None
    assert in_round(("a", 1.0), is_first=True).closing(LEAST_FIRST_GRACE_S) is None


def test_a_way_that_can_t_be_had_after_all_may_come_again():
    round_ = in_round(("a", 10.0), ("b", 10.5), ("c", 10.6))
    round_.take_back("c")
    assert round_.missing == ("c",)
    assert round_.closing(10.6) is None
    round_.arrived("c", PseudoGradient("", 100, 1.0), 11.0)
    assert round_.closing(11.0) is not None


def test_an_island_is_as_fast_as_its_steps_were():
    assert PseudoGradient("", 100, 1.0, 4.0).tokens_per_s == 25.0
    assert PseudoGradient("", 100, 1.0).tokens_per_s == 0.0


def test_the_way_of_an_island_that_is_lost_after_it_came_counts():
    round_ = in_round(("a", 10.0), ("b", 10.5), ("c", 10.6))
    round_.set_lost({"c"})
    closing = round_.closing(10.6)
    assert closing is not None
    assert closing.counted == ISLANDS


def test_only_the_first_way_of_an_island_counts_and_none_of_a_strangers():
    round_ = in_round(("a", 10.0), ("b", 10.5), ("c", 10.6))
    round_.arrived("a", PseudoGradient("", 999, 5.0), 10.7)
    round_.arrived("z", PseudoGradient("", 999, 5.0), 10.7)
    closing = round_.closing(10.7)
    assert closing is not None
    assert closing.tokens == (100, 100, 100)


def test_what_is_no_number_or_far_too_long_is_left_out():
    for norm in (math.nan, math.inf, 10.1):
        round_ = in_round(("a", 10.0), ("b", 10.5))
        round_.arrived("c", PseudoGradient("", 100, norm), 10.6)
        assert round_.closing(10.6) == Closing(("a", "b"), (100, 100), ("c",))


def test_whose_weights_are_not_those_of_the_others_is_left_out_whether_its_way_is_sound_or_not():
    closing = Closing(("a", "b", "c"), (100, 300, 200), ("d", "e"), ("f",))
    assert closing.without_adrift(("b", "e", "f")) == Closing(
        ("a", "c"), (100, 200), ("d",), ("f",), adrift=("b", "e")
    )
    assert closing.without_adrift(()) == closing


def test_of_two_ways_nobody_knows_which_one_is_at_fault():
    round_ = OuterRound(("a", "b"))
    round_.arrived("a", PseudoGradient("", 100, 1.0), 10.0)
    round_.arrived("b", PseudoGradient("", 100, 50.0), 10.0)
    closing = round_.closing(10.0)
    assert closing is not None
    assert closing.counted == ("a", "b")


def nothing_to_merge(*lost: str) -> OuterRound:
    """A round in which one island is in at 10 s, with a way that is no number."""
    round_ = OuterRound(ISLANDS)
    round_.arrived("a", PseudoGradient("", 100, math.inf), 10.0)
    round_.set_lost(lost)
    return round_


def test_islands_that_train_are_waited_for_however_long_one_has_been_in_with_no_number():
    round_ = nothing_to_merge("c")
    assert round_.closing(10.0 + 100 * LEAST_FIRST_GRACE_S) is None
    round_.arrived("b", PseudoGradient("", 100, 1.0, 900.0), 1000.0)
    assert round_.closing(1000.0) == Closing(("b",), (100,), ("a",), ("c",))


def test_the_grace_begins_with_the_first_way_that_can_be_merged():
    round_ = nothing_to_merge()
    round_.arrived("b", PseudoGradient("", 100, 1.0, 100.0), 100.0)
    assert round_.closing(100.0 + 100.0 * GRACE - 0.1) is None
    assert round_.closing(100.0 + 100.0 * GRACE) == Closing(("b",), (100,), ("a",), ("c",))


def test_the_lost_have_a_while_to_come_back_where_nothing_else_could_be_merged():
    round_ = nothing_to_merge("b", "c")
    assert round_.closing(20.0) is None
    assert round_.closing(20.0 + LOST_GRACE_S - 0.1) is None
    assert round_.closing(20.0 + LOST_GRACE_S) == Closing((), (), ("a",), ("b", "c"))
    again = nothing_to_merge("b", "c")
    assert again.closing(20.0) is None
    again.set_lost({"b"})
    assert again.closing(20.0 + LOST_GRACE_S) is None
    again.set_lost({"b", "c"})
    assert again.closing(30.0 + LOST_GRACE_S) is None


def test_where_all_are_in_with_no_numbers_nobody_is_waited_for():
    round_ = OuterRound(("a", "b"))
    for island in "ab":
        round_.arrived(island, PseudoGradient("", 100, math.nan), 10.0)
    assert round_.closing(10.0) == Closing((), (), ("a", "b"))


def test_a_round_of_which_all_are_lost_for_a_while_closes_with_nothing():
    round_ = OuterRound(("a", "b"))
    round_.set_lost({"a", "b"})
    assert round_.closing(5.0) is None
    assert round_.closing(5.0 + LOST_GRACE_S) == Closing((), (), (), ("a", "b"))


def test_a_way_that_is_told_once_more_without_its_time_cuts_nobody_short():
    round_ = OuterRound(("a", "b", "c"))
    round_.arrived("a", PseudoGradient("", 100, 1.0), 10.0)
    assert round_.closing(10.0 + LEAST_FIRST_GRACE_S - 0.1) is None
    round_.arrived("b", PseudoGradient("", 100, 1.0, 500.0), 20.0)
    assert round_.closing(10.0 + 500.0 * GRACE - 0.1) is None
    assert round_.closing(10.0 + 500.0 * GRACE) is not None
