"""Lines of outer steps that end in what nobody in reach could go on from."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import OuterStepAbandoned, OuterStepTaken
from jupiterd.cluster.ledger.lost_outer_line import steps_to_park
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.ledger.outer_line import Steps, outer_line, precedence, whole
from tests.support.cluster.building import CYCLE, NODES, outer_step
from tests.unit.cluster.artifacts.test_retention import run_of

ROOT = outer_step(0)


def after(parent: OuterStepTaken, total_tokens: int) -> OuterStepTaken:
    return outer_step(parent.number + 1, fact_hash(parent), total_tokens)


def named(*steps: OuterStepTaken) -> Steps:
    return {fact_hash(step): step for step in steps}


FIRST = after(ROOT, 100)
THEIRS = after(FIRST, 200)
ITS_OWN = after(FIRST, 150)
ITS_NEXT = after(ITS_OWN, 180)
"""Of a machine that was apart, and went on alone for longer than the others."""


def test_what_the_others_have_counts_once_nobody_has_what_one_alone_has_merged() -> None:
    steps = named(ROOT, FIRST, THEIRS, ITS_OWN, ITS_NEXT)
    missing = [fact_hash(ITS_OWN), fact_hash(ITS_NEXT)]
    assert steps_to_park(steps, missing) == [fact_hash(ITS_OWN)]


def test_a_step_that_nobody_could_take_is_taken_anew() -> None:
    steps = named(ROOT, FIRST, THEIRS)
    assert steps_to_park(steps, [fact_hash(THEIRS)]) == [fact_hash(THEIRS)]


def test_nothing_is_set_aside_where_the_end_is_in_reach_or_nothing_would_be_left() -> None:
    steps = named(ROOT, FIRST, THEIRS)
    assert steps_to_park(steps, [fact_hash(FIRST)]) == []
    assert steps_to_park(steps, [*steps]) == []


def test_a_run_whose_steps_are_parked_has_the_line_without_them() -> None:
    run = run_of(ROOT, FIRST, THEIRS, ITS_OWN, ITS_NEXT)
    assert [*run.outer_line().values()][-1] == ITS_NEXT
    run.apply(OuterStepAbandoned(CYCLE, fact_hash(ITS_OWN)), (1, NODES[0], "u", 9))
    assert [*run.outer_line().values()] == [ROOT, FIRST, THEIRS]
    run.apply(replace(ITS_NEXT, total_tokens=190), (1, NODES[0], "u", 10))
    assert [*run.outer_line().values()] == [ROOT, FIRST, THEIRS], "it hangs below what is parked"


@st.composite
def trees(draw: st.DrawFn) -> tuple[Steps, list[str]]:
    """Draw outer steps of a few groups, and which of them can't be had."""
    taken = [ROOT]
    for number in range(draw(st.integers(0, 12))):
        taken.append(after(draw(st.sampled_from(taken)), number))
    steps = named(*taken)
    return steps, draw(st.lists(st.sampled_from([*steps]), unique=True))


@given(trees())
def test_the_line_ends_in_the_best_step_that_can_be_had(drawn: tuple[Steps, list[str]]) -> None:
    steps, missing = drawn
    able = [key for key in whole(steps) if key not in missing]
    suspended = steps_to_park(steps, missing)
    left = {key: step for key, step in steps.items() if key not in suspended}
    expected = max(able or steps, key=precedence(steps))
    assert [*outer_line(left)][-1] == expected
    assert bool(suspended) == (expected != [*outer_line(steps)][-1])
