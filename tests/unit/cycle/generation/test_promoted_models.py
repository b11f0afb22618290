"""Which student is promoted where no text is to be generated, and how it goes again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.generation.promoted_models import PromotedModels, promoted_models_after
from jupiterd.cycle.generation.promotion import (
    ActiveGenerators,
    PastRound,
    PromotionRules,
    active_generators_after,
)
from jupiterd.ids import short

MARGIN_BPB = 0.005
FIRST, SECOND, THIRD = "1" * 64, "2" * 64, "3" * 64
WORSE_BPB = 0.1

steps = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from(["PROMOTE", "HOLD", "REJECT", "ABSTAIN"]),
        "dismissed": st.booleans(),
        "appointed": st.booleans(),
        "worse_bpb": st.sampled_from([None, -0.1, 0.0, WORSE_BPB]),
        "who": st.integers(min_value=1, max_value=9),
    }
)


def said(number: int, student: str, verdict: str = "PROMOTE", **more: object) -> PastRound:
    return PastRound(number, student, verdict, **more)


def after(*rounds: PastRound) -> PromotedModels:
    return promoted_models_after(rounds, MARGIN_BPB)


def test_nobody_is_promoted_before_a_verdict_says_so():
    assert after() == PromotedModels()
    assert after(said(1, FIRST, "HOLD"), said(2, SECOND, "ABSTAIN")) == PromotedModels()


def test_a_student_is_promoted_at_once_and_stays_so_through_rounds_that_promote_nobody():
    found = after(said(1, FIRST), said(2, SECOND, "HOLD"), said(3, THIRD, "REJECT"))
    assert found.newest == FIRST
    assert found.notices == (f"round 1: student {short(FIRST)} was promoted",)


def test_the_newest_promotion_counts_and_a_rollback_brings_back_the_one_before():
    rounds = [said(1, FIRST), said(2, SECOND), said(3, THIRD, "HOLD", dismissed=(SECOND,))]
    assert after(*rounds[:2]).newest == SECOND
    found = after(*rounds)
    assert found.newest == FIRST
    assert found.notices[-1] == f"round 3: student {short(SECOND)} was rolled back by a person"
    assert after(*rounds, said(4, "4" * 64, "HOLD", dismissed=(FIRST,))).newest == ""


def test_whom_a_person_appoints_is_promoted_whatever_the_gate_said():
    found = after(said(1, FIRST), said(2, SECOND, "HOLD", appointments=(SECOND,)))
    assert found.newest == SECOND
    assert found.notices[-1] == f"round 2: student {short(SECOND)} was promoted by a person"
    assert after(said(1, FIRST), said(2, SECOND, appointments=(FIRST,))).students == (SECOND, FIRST)


def test_of_several_whom_people_appoint_the_last_one_counts_and_the_others_come_back():
    first, second = said(1, FIRST), said(2, SECOND)
    both = said(3, THIRD, "HOLD", appointments=(FIRST, SECOND))
    assert after(first, second, both).students == (FIRST, SECOND)
    rolled_back = said(3, THIRD, "HOLD", appointments=(FIRST,), dismissed=(SECOND,))
    assert after(first, second, rolled_back).students == (FIRST,)


def test_a_worse_successor_says_nothing_of_a_student_that_wrote_nothing():
    assert after(said(1, FIRST), said(2, SECOND, "HOLD", worse_bpb=WORSE_BPB)).newest == FIRST
    others = said(2, SECOND, "HOLD", worse_bpb=WORSE_BPB, trained_on=(THIRD,))
    assert after(said(1, FIRST), others).newest == FIRST


@pytest.mark.parametrize(("worse_bpb", "stays"), [(WORSE_BPB, False), (0.004, True), (None, True)])
def test_a_student_whose_text_did_harm_before_people_wanted_none_stays_out(
    worse_bpb: float | None, stays: bool
):
    found = after(said(1, FIRST), said(2, SECOND, "HOLD", worse_bpb=worse_bpb, trained_on=(FIRST,)))
    assert (found.newest == FIRST) is stays
    assert stays or "with its text is 0.1000 bits per byte worse" in found.notices[-1]


def drawn(steps: Sequence[dict[str, object]]) -> list[PastRound]:
    rounds: list[PastRound] = []
    for number, step in enumerate(steps, 1):
        student = str(min(int(str(step["who"])), number)) * 64
        rounds.append(
            said(
                number,
                f"{number}" * 64,
                str(step["verdict"]),
                worse_bpb=step["worse_bpb"],
                dismissed=(student,) if step["dismissed"] else (),
                appointments=(student,) if step["appointed"] and not step["dismissed"] else (),
            )
        )
    return rounds


@given(st.lists(steps, max_size=9))
def test_the_promoted_one_is_the_last_that_was_promoted_and_not_rolled_back_since(
    steps: list[dict[str, object]],
):
    """By another way than the fold's: each student's own last word, and when it was said."""
    last: dict[str, tuple[int, int] | None] = {}
    rounds = drawn(steps)
    for past in rounds:
        if past.verdict == "PROMOTE":
            last[past.candidate] = (past.number, 0)
        last.update(dict.fromkeys(past.dismissed))
        last.update(dict.fromkeys(past.appointments, (past.number, 1)))
    standing = {student: when for student, when in last.items() if when is not None}
    found = after(*rounds)
    assert set(found.students) == set(standing)
    assert found.newest == max(standing, key=standing.__getitem__, default="")


@given(st.lists(steps, max_size=9), st.data())
def test_a_later_round_never_changes_what_was_told_of_earlier_ones(
    steps: list[dict[str, object]], data: st.DataObject
):
    rounds = drawn(steps)
    cut = data.draw(st.integers(min_value=0, max_value=len(rounds)))
    before, whole = after(*rounds[:cut]), after(*rounds)
    assert whole.notices[: len(before.notices)] == before.notices
    assert not any("prompts" in each or "answers" in each for each in whole.notices)
    assert len(whole.students) == len(set(whole.students))


@given(st.lists(steps, max_size=9), st.booleans())
def test_without_templates_nobody_generates(steps: list[dict[str, object]], has_named: bool):
    rules = PromotionRules((), MARGIN_BPB, has_named)
    assert active_generators_after(drawn(steps), rules) == ActiveGenerators()
