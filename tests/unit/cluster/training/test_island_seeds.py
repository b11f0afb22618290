"""What an island begins anew from."""

from collections.abc import Sequence
from dataclasses import replace

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.ledger.outer_branch import outer_branch
from jupiterd.cluster.training.island_seeds import (
    BY_NO_GANG,
    left_out_again,
    left_out_last,
    reseeded,
    seeds,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId
from tests.support.cluster.building import outer_step

ONE, TWO, THREE = (CycleId(digit * 16) for digit in "123")
BAD = "its weights are no numbers"
LATE = "it didn't come in time"


def taken(
    parent: OuterStepTaken | None,
    *who: CycleId,
    left_out: Sequence[CycleId] = (),
    reason: str = BAD,
) -> OuterStepTaken:
    """An outer step, and a round of 30 steps in which these have a part."""
    number = 0 if parent is None else parent.number + 1
    return replace(
        outer_step(number, "" if parent is None else fact_hash(parent), total_tokens=number * 10),
        batches=dict.fromkeys(who, 4),
        left_out=dict.fromkeys(left_out, reason),
    )


def line(*steps: OuterStepTaken) -> dict[str, OuterStepTaken]:
    return dict(outer_branch({fact_hash(step): step for step in steps}))


def saved(
    island: CycleId, step: int, parent: int = 0, attempt: int = 1, **more: bool
) -> CheckpointCommitted:
    name = f"{island[0]}-{step}"
    above = f"{island[0]}-{parent}" if parent else ""
    fact = CheckpointCommitted(
        island, 1, above, ArtifactId(name), attempt, step, step * 100, step, 2.5, is_final=False
    )
    return replace(fact, **more)


def state(*facts: CycleFact) -> CycleState:
    cycle = CycleState()
    for index, fact in enumerate(facts, 1):
        cycle.apply(fact, (1, NodeId("a"), "u", index))
    return cycle


FIRST = taken(None, ONE, TWO)
SECOND = taken(FIRST, ONE, TWO)
THIRD = taken(SECOND, ONE)
LINE = line(FIRST, SECOND, THIRD)


def steps(found: Sequence[CheckpointCommitted]) -> list[tuple[CycleId, int]]:
    return [(each.cycle, each.step) for each in found]


def test_the_newest_of_all_others_comes_first() -> None:
    one = state(saved(ONE, 20), saved(ONE, 70, 20))
    two = state(saved(TWO, 50))
    assert steps(seeds(LINE, [one, two])) == [(ONE, 70), (TWO, 50), (ONE, 20)]


def test_what_was_saved_in_a_round_without_a_part_in_it_is_of_another_line() -> None:
    apart = state(saved(TWO, 20), saved(TWO, 60, 20), saved(TWO, 80, 60))
    found = seeds(LINE, [apart])
    assert steps(found) == [(TWO, 60), (TWO, 20)], "60 is the end of the round before, at the least"


def test_what_an_island_had_before_it_began_anew_is_no_seed_nor_is_what_it_had_from_others() -> (
    None
):
    old = saved(ONE, 40)
    anew = reseeded(ONE, saved(TWO, 30), old)
    later = replace(saved(ONE, 65), parent=anew.artifact, tokens=anew.tokens + 1)
    assert steps(seeds(LINE, [state(old, anew)])) == []
    assert steps(seeds(LINE, [state(old, anew, later)])) == [(ONE, 65)]


def test_final_weights_are_no_seed_and_of_one_island_no_more_are_tried_than_are_kept() -> None:
    many = [saved(ONE, step, step - 5 if step > 5 else 0) for step in range(5, 85, 5)]
    end = saved(ONE, 89, 80, is_final=True)
    assert steps(seeds(LINE, [state(*many, end)])) == [(ONE, 80), (ONE, 75), (ONE, 70)]


def test_where_there_are_no_outer_steps_there_is_no_seed() -> None:
    assert steps(seeds({}, [state(saved(ONE, 20))])) == []


def test_what_is_begun_anew_from_is_the_end_of_the_islands_line_whatever_was_before() -> None:
    own, other = saved(TWO, 80), saved(TWO, 79)
    anew = reseeded(TWO, saved(ONE, 20), own)
    assert (anew.cycle, anew.artifact, anew.step) == (TWO, "1-20", 20)
    assert (anew.parent, anew.tokens, anew.attempt) == (own.artifact, own.tokens + 1, BY_NO_GANG)
    assert state(own, other, anew).last_checkpoint(1) == anew
    first = reseeded(TWO, saved(ONE, 20), None)
    assert (first.parent, first.tokens) == ("", 2_000)


def test_an_island_that_is_left_out_twice_running_is_told_by_the_second_step() -> None:
    second = taken(FIRST, ONE, TWO, left_out=[TWO])
    third = taken(second, ONE, TWO, left_out=[TWO])
    assert left_out_again(line(FIRST, second, third), TWO, BAD) == fact_hash(third)
    assert left_out_again(line(FIRST, second), TWO, BAD) == ""
    assert left_out_again(line(FIRST, second, third), ONE, BAD) == ""
    assert left_out_again(line(FIRST, second, third), TWO, "it didn't come in time") == ""


def test_where_rounds_overlap_the_one_that_was_open_meanwhile_does_not_count() -> None:
    steps = [replace(FIRST, lag=2)]
    for bad in (False, True, True, True):
        steps.append(replace(taken(steps[-1], ONE, TWO, left_out=[TWO] if bad else []), lag=2))
    assert left_out_again(line(*steps[:-1]), TWO, BAD) == "", "it began both with the same weights"
    assert left_out_again(line(*steps), TWO, BAD) == fact_hash(steps[-1])


def test_rounds_without_a_part_in_them_say_nothing_of_an_island() -> None:
    second = taken(FIRST, ONE, left_out=[TWO])
    third = taken(second, ONE, TWO)
    fourth = taken(third, ONE, TWO, left_out=[TWO])
    assert left_out_again(line(FIRST, second, third, fourth), TWO, BAD) == fact_hash(fourth)
    fine = taken(third, ONE, TWO)
    assert left_out_again(line(FIRST, second, third, fine), TWO, BAD) == ""


def test_one_that_was_left_out_is_told_by_that_step_until_a_way_of_it_is_merged() -> None:
    second = taken(FIRST, ONE, TWO, left_out=[TWO])
    late = taken(second, ONE, TWO, left_out=[TWO], reason=LATE)
    merged = taken(late, ONE, TWO)
    without = taken(late, ONE, left_out=[TWO], reason=LATE)
    after = taken(without, ONE, TWO)
    assert left_out_last(line(FIRST), TWO, BAD) == ""
    assert left_out_last(line(FIRST, second), TWO, BAD) == fact_hash(second)
    assert left_out_last(line(FIRST, second), ONE, BAD) == ""
    assert left_out_last(line(FIRST, second, late), TWO, BAD) == fact_hash(second)
    assert left_out_last(line(FIRST, second, late, merged), TWO, BAD) == ""
    apart = line(FIRST, second, late, without, after)
    assert left_out_last(apart, TWO, BAD) == fact_hash(second), "it had no part in the last round"


def test_rounds_that_it_had_a_part_in_before_it_began_anew_say_nothing_of_what_it_has_now() -> None:
    second = taken(FIRST, ONE, TWO)
    third = taken(second, ONE, TWO, left_out=[TWO])
    assert left_out_last(line(FIRST, second, third), TWO, BAD, after=0) == fact_hash(third)
    assert left_out_last(line(FIRST, second, third), TWO, BAD, after=1) == ""


def test_what_one_has_saved_since_its_weights_were_others_is_no_seed_until_it_is_merged() -> None:
    """Rounds begin with steps 0, 30, 60 and 90; that of 30 shows that its weights are others."""
    second = taken(FIRST, ONE, TWO)
    third = taken(second, ONE, TWO, left_out=[TWO])
    fourth = taken(third, ONE, TWO, left_out=[TWO], reason=LATE)
    own = [saved(TWO, step, step - 10 if step > 10 else 0) for step in range(10, 120, 10)]
    apart = line(FIRST, second, third, fourth)
    assert steps(seeds(apart, [state(*own)], BAD)) == [(TWO, 20), (TWO, 10)]
    assert steps(seeds(apart, [state(*own)], "another reason")) == [
        (TWO, 110), (TWO, 100), (TWO, 90),
    ]  # fmt: skip
    again = taken(third, ONE, TWO)
    both = line(FIRST, second, third, again)
    assert steps(seeds(both, [state(*own)], BAD))[0] == (TWO, 110), "by then its way counts"
    anew = reseeded(TWO, saved(ONE, 20), own[5])
    later = replace(saved(TWO, 65), parent=anew.artifact, tokens=anew.tokens + 1)
    assert steps(seeds(apart, [state(*own[:6], anew, later)], BAD)) == [], "nobody knows yet"
    assert steps(seeds(both, [state(*own[:6], anew, later)], BAD)) == [(TWO, 65)]
