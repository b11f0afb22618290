"""Which outer steps of a run's islands count, in whatever order they come."""

from dataclasses import replace
from itertools import permutations
from typing import Any

from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.facts.fact_wire import from_wire, to_wire
from jupiterd.cluster.facts.facts import OuterStepAbandoned, OuterStepTaken
from jupiterd.cluster.ledger.lww_registers import canonical_bytes, fact_hash
from jupiterd.cluster.ledger.outer_branch import (
    Steps,
    outer_branch,
    precedence,
    steps_to_abandon,
    whole,
)
from tests.support.cluster.building import CYCLE, NODES, outer_step
from tests.unit.cluster.artifacts.test_retention import run_of

Wire = tuple[str, int, dict[str, Any]]

BEGINNING = outer_step(0)
ROOT = fact_hash(BEGINNING)


def test_nothing_counts_before_the_beginning_is_known() -> None:
    orphan = outer_step(1, ROOT)
    assert outer_branch({}) == {}
    assert outer_branch({fact_hash(orphan): orphan}) == {}


def test_the_line_leads_from_the_beginning_to_the_last_step() -> None:
    first = outer_step(1, ROOT, 100)
    second = outer_step(2, fact_hash(first), 200)
    steps = {fact_hash(step): step for step in (second, BEGINNING, first)}
    assert list(outer_branch(steps).values()) == [BEGINNING, first, second]


def test_of_two_lines_the_one_with_more_steps_counts_then_the_one_with_more_tokens() -> None:
    poor, rich = outer_step(1, ROOT, 100), outer_step(1, ROOT, 200)
    later = outer_step(2, fact_hash(poor), 150)
    for order in permutations((BEGINNING, poor, rich)):
        steps = {fact_hash(step): step for step in order}
        assert [*outer_branch(steps).values()][-1] == rich
    for order in permutations((BEGINNING, poor, rich, later)):
        steps = {fact_hash(step): step for step in order}
        assert [*outer_branch(steps).values()] == [BEGINNING, poor, later]


def test_a_step_below_one_that_nobody_knows_waits() -> None:
    steps = {ROOT: BEGINNING, "far": outer_step(7, "nobody knows it", 900)}
    assert list(outer_branch(steps)) == [ROOT]


def test_steps_that_were_written_before_fields_came_still_name_each_other() -> None:
    def read_again(step: OuterStepTaken) -> OuterStepTaken:
        fact = from_wire(*as_written(step))
        assert isinstance(fact, OuterStepTaken)
        return fact

    first = outer_step(1, hash_of(as_written(BEGINNING)), 100)
    second = outer_step(2, hash_of(as_written(first)), 200)
    found = [read_again(step) for step in (BEGINNING, first, second)]
    assert list(outer_branch({fact_hash(step): step for step in found}).values()) == found
    overlapped, timed = replace(second, lag=2), replace(second, elapsed_s=1.5)
    foretold = replace(second, predicted_tokens_per_s=900.0)
    scored, decided = replace(second, scored_step=40), replace(second, horizon={"step": 40.0})
    told = second, overlapped, timed, foretold, scored, decided, replace(second, weights=(40, 60))
    assert len({fact_hash(step) for step in told}) == len(told)


def as_written(step: OuterStepTaken) -> Wire:
    """The fact as it was written when islands were new."""
    kind, version, body = to_wire(step)
    later = {"start", "elapsed_s", "trained_s", "lag", "way_bytes", "predicted_tokens_per_s"}
    later |= {"horizon", "scored_step", "weights"}
    return kind, version, {name: value for name, value in body.items() if name not in later}


def hash_of(wire: Wire) -> str:
    return blake3(canonical_bytes(wire)).hexdigest()


def after(parent: OuterStepTaken, total_tokens: int) -> OuterStepTaken:
    return outer_step(parent.number + 1, fact_hash(parent), total_tokens)


def named(*steps: OuterStepTaken) -> Steps:
    return {fact_hash(step): step for step in steps}


FIRST = after(BEGINNING, 100)
THEIRS = after(FIRST, 200)
ITS_OWN = after(FIRST, 150)
ITS_NEXT = after(ITS_OWN, 180)
"""Of a machine that was apart, and went on alone for longer than the others."""


def test_what_the_others_have_counts_once_nobody_has_what_one_alone_has_merged() -> None:
    steps = named(BEGINNING, FIRST, THEIRS, ITS_OWN, ITS_NEXT)
    missing = [fact_hash(ITS_OWN), fact_hash(ITS_NEXT)]
    assert steps_to_abandon(steps, missing) == [fact_hash(ITS_OWN)]


def test_a_step_that_nobody_could_take_is_taken_anew() -> None:
    steps = named(BEGINNING, FIRST, THEIRS)
    assert steps_to_abandon(steps, [fact_hash(THEIRS)]) == [fact_hash(THEIRS)]


def test_nothing_is_set_aside_where_the_end_is_in_reach_or_nothing_would_be_left() -> None:
    steps = named(BEGINNING, FIRST, THEIRS)
    assert steps_to_abandon(steps, [fact_hash(FIRST)]) == []
    assert steps_to_abandon(steps, [*steps]) == []


def test_a_run_whose_steps_are_parked_has_the_line_without_them() -> None:
    run = run_of(BEGINNING, FIRST, THEIRS, ITS_OWN, ITS_NEXT)
    assert [*run.outer_branch().values()][-1] == ITS_NEXT
    run.apply(OuterStepAbandoned(CYCLE, fact_hash(ITS_OWN)), (1, NODES[0], "u", 9))
    assert [*run.outer_branch().values()] == [BEGINNING, FIRST, THEIRS]
    run.apply(replace(ITS_NEXT, total_tokens=190), (1, NODES[0], "u", 10))
    assert [*run.outer_branch().values()] == [BEGINNING, FIRST, THEIRS], (
        "it hangs below what is parked"
    )


@st.composite
def trees(draw: st.DrawFn) -> tuple[Steps, list[str]]:
    """Draw outer steps of a few groups, and which of them can't be had."""
    taken = [BEGINNING]
    for number in range(draw(st.integers(0, 12))):
        taken.append(after(draw(st.sampled_from(taken)), number))
    steps = named(*taken)
    return steps, draw(st.lists(st.sampled_from([*steps]), unique=True))


@given(trees())
def test_the_line_ends_in_the_best_step_that_can_be_had(drawn: tuple[Steps, list[str]]) -> None:
    steps, missing = drawn
    able = [key for key in whole(steps) if key not in missing]
    suspended = steps_to_abandon(steps, missing)
    left = {key: step for key, step in steps.items() if key not in suspended}
    expected = max(able or steps, key=precedence(steps))
    assert [*outer_branch(left)][-1] == expected
    assert bool(suspended) == (expected != [*outer_branch(steps)][-1])
