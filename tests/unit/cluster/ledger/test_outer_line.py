"""Which outer steps of a run's islands count, whoever looks and whatever came first."""

from dataclasses import replace
from itertools import permutations
from typing import Any

from blake3 import blake3

from jupiterd.cluster.facts.fact_wire import from_wire, to_wire
from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.lww_registers import canonical_bytes, fact_hash
from jupiterd.cluster.ledger.outer_line import outer_line
from tests.support.cluster.building import outer_step

Wire = tuple[str, int, dict[str, Any]]

BEGINNING = outer_step(0)
ROOT = fact_hash(BEGINNING)


def test_nothing_counts_before_the_beginning_is_known() -> None:
    orphan = outer_step(1, ROOT)
    assert outer_line({}) == {}
    assert outer_line({fact_hash(orphan): orphan}) == {}


def test_the_line_leads_from_the_beginning_to_the_last_step() -> None:
    first = outer_step(1, ROOT, 100)
    second = outer_step(2, fact_hash(first), 200)
    steps = {fact_hash(step): step for step in (second, BEGINNING, first)}
    assert list(outer_line(steps).values()) == [BEGINNING, first, second]


def test_of_two_lines_the_one_with_more_steps_counts_then_the_one_with_more_tokens() -> None:
    poor, rich = outer_step(1, ROOT, 100), outer_step(1, ROOT, 200)
    later = outer_step(2, fact_hash(poor), 150)
    for order in permutations((BEGINNING, poor, rich)):
        steps = {fact_hash(step): step for step in order}
        assert [*outer_line(steps).values()][-1] == rich
    for order in permutations((BEGINNING, poor, rich, later)):
        steps = {fact_hash(step): step for step in order}
        assert [*outer_line(steps).values()] == [BEGINNING, poor, later]


def test_a_step_below_one_that_nobody_knows_waits() -> None:
    steps = {ROOT: BEGINNING, "far": outer_step(7, "nobody knows it", 900)}
    assert list(outer_line(steps)) == [ROOT]


def test_steps_that_were_written_before_fields_came_still_name_each_other() -> None:
    def read_again(step: OuterStepTaken) -> OuterStepTaken:
        fact = from_wire(*as_written(step))
        assert isinstance(fact, OuterStepTaken)
        return fact

    first = outer_step(1, hash_of(as_written(BEGINNING)), 100)
    second = outer_step(2, hash_of(as_written(first)), 200)
    found = [read_again(step) for step in (BEGINNING, first, second)]
    assert list(outer_line({fact_hash(step): step for step in found}).values()) == found
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
