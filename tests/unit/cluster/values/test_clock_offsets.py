"""Clocks that differ are told, by all machines alike, and a slow answer proves no difference."""

import math
from itertools import combinations

import pytest

from jupiterd.cluster.health.health import ClusterView, judge
from jupiterd.cluster.values.clock_offsets import ClockOffset, clock_differences
from jupiterd.ids import NodeId

ADA, BOB, EVE = (NodeId(letter * 32) for letter in "abe")
NAMES = {ADA: "ada", BOB: "bob", EVE: "eve"}
DAY_S = 86_400.0


def after(*answers: tuple[float, float, float]) -> ClockOffset:
    offset = ClockOffset()
    for answer in answers:
        offset.note(*answer)
    return offset


def seen_by_each(clocks_s: dict[NodeId, float]) -> dict[str, set[tuple[str, str]]]:
    """What each machine says of the clocks, which stand so."""
    return {
        own: set(
            clock_differences(own, {n: s - at for n, s in clocks_s.items() if n != own}, NAMES)
        )
        for own, at in clocks_s.items()
    }


def test_an_answer_proves_a_difference_but_for_half_of_its_way():
    assert after((100.0, 160.5, 1.0)).proved_s == 59.5
    assert after((100.0, 40.5, 1.0)).proved_s == -59.5
    assert after((100.0, 100.9, 1.0)).proved_s == 0.0, "it may be nothing but the way"


def test_the_quickest_of_the_latest_answers_counts():
    assert after((0.0, 3.5, 4.0), (10.0, 15.5, 1.0), (20.0, 25.0, 2.0)).proved_s == 4.5
    slow = ((float(n), float(n) + 9.0, 8.0) for n in range(4))
    assert after((0.0, 50.0, 0.1), *slow).proved_s == 1.0, "what lies long ago is forgotten"


@pytest.mark.parametrize("told_s", [0.0, math.nan, math.inf])
def test_a_machine_that_does_not_say_proves_nothing(told_s: float):
    assert after((100.0, told_s, 0.1)).proved_s is None


def test_who_is_forgotten_proves_nothing():
    offset = after((100.0, 160.0, 0.1))
    offset.clear()
    assert offset.proved_s is None


def test_of_two_machines_both_say_the_same_and_accuse_nobody():
    told = seen_by_each({ADA: 0.0, BOB: 2 * DAY_S})
    title = "the clocks of ada and bob differ by 2 days"
    assert told == {node: {(f"{ADA} {BOB}", title)} for node in (ADA, BOB)}
    assert seen_by_each({ADA: 0.0, BOB: 1.9}) == {ADA: set(), BOB: set()}


@pytest.mark.parametrize(("wrong", "other"), [*combinations((ADA, BOB, EVE), 2), (EVE, ADA)])
def test_of_three_machines_all_name_the_one_that_differs_also_itself(wrong: NodeId, other: NodeId):
    told = seen_by_each({ADA: 0.0, BOB: 0.0, EVE: 0.0, wrong: -3600.0, other: 0.4})
    title = f"{NAMES[wrong]}'s clock is 1 h 00 min behind those of the others"
    assert all(said == {(wrong, title)} for said in told.values())


def test_it_is_a_line_of_health_with_a_way_out():
    view = ClusterView(leader=ADA, nodes=(), clocks=((BOB, "bob's clock is 5 s behind"),))
    line = next(each for each in judge(view) if each.code == "clock-differs")
    assert (line.title, line.about) == ("bob's clock is 5 s behind", BOB)
    assert "set-ntp" in line.hint
