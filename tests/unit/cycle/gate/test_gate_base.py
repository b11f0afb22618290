"""The model that a cycle began with, before the gate: it is to be beaten, and not forgotten."""

import json
import math
import random
from dataclasses import replace

import pytest

from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.decision import AnswerOutcome, Decision, Question
from jupiterd.cycle.gate.record import Material, decide_on, read_score_lines, score_lines
from jupiterd.cycle.gate.scores import GENERAL, DocumentScore
from jupiterd.cycle.gate.verdict import Verdict, decide
from jupiterd.cycle.rounds.explanation import explain
from tests.support.cycle.gate_material import NATS_PER_BPB, SETTINGS, document, documents

SEED = 20_261_126

GIVEN = {
    "gate": {"alpha": 0.05, "margin_bpb": 0.005, "stratum_veto_bpb": 0.02, "max_forgetting": 0.02},
    "holdout": {"min_documents": 20, "min_clusters": 5},
    "look": 1, "incumbent": "s" * 64, "generator": "", "base": "b" * 64, "round": 2,
}  # fmt: skip


def beside_base(saved: float, saved_base: float) -> list[DocumentScore]:
    """Documents of which a candidate saves so much beside the last student, and beside the base."""
    shift = (saved_base - saved) * NATS_PER_BPB
    found = documents(random.Random(SEED), saved)
    return [replace(each, base_nats=each.incumbent_nats + shift) for each in found]


def general(growth: float, count: int = 12) -> list[DocumentScore]:
    base = 1.5 * NATS_PER_BPB
    return [
        document(1000 + n, 0.0, part=GENERAL, candidate_nats=base * (1 + growth), base_nats=base)
        for n in range(count)
    ]


def outcome(verdict: Verdict, question: Question) -> AnswerOutcome | None:
    answer = verdict.questions.get(question)
    return None if answer is None else answer.outcome


def test_who_beats_the_last_student_and_the_model_that_was_brought_is_promoted() -> None:
    verdict = decide([*beside_base(0.05, 0.05), *general(0.01)], SETTINGS, 1)
    assert verdict.decision is Decision.PROMOTE
    assert verdict.base_bpb == pytest.approx(verdict.incumbent_bpb)
    assert outcome(verdict, Question.BEYOND_BASE) is AnswerOutcome.PASSED
    assert verdict.forgetting is not None
    assert verdict.forgetting.growth == pytest.approx(0.01)
    assert verdict.documents == 90, "general text is none of the domain's"


@pytest.mark.parametrize(
    ("saved_base", "decision", "told"),
    [
        (0.0, Decision.HOLD, "not shown to be better than the model that was brought"),
        (-0.3, Decision.REJECT, "worse than the model that was brought"),
    ],
)
def test_a_student_that_beats_the_one_before_and_not_the_model_that_was_brought_is_not_promoted(
    saved_base: float, decision: Decision, told: str
) -> None:
    verdict = decide(beside_base(0.05, saved_base), SETTINGS, 1)
    assert (verdict.decision, outcome(verdict, Question.BETTER)) == (decision, AnswerOutcome.PASSED)
    assert told in verdict.reason


def test_a_model_that_was_ruined_is_rejected_in_round_one() -> None:
    """As measured: 1.9514 bits per byte after 3e-3, 1.1090 untouched, 3.0489 counting triples."""
    ruined = [replace(each, base_nats=each.incumbent_nats) for each in beside_base(-0.84, -0.84)]
    verdict = decide(ruined, SETTINGS, 1)
    assert verdict.decision is Decision.REJECT


@pytest.mark.parametrize(("growth", "is_kept"), [(-0.1, True), (0.0199, True), (0.021, False)])
def test_general_text_may_take_two_hundredths_more_and_no_more(
    growth: float, *, is_kept: bool
) -> None:
    verdict = decide([*beside_base(0.05, 0.05), *general(growth)], SETTINGS, 1)
    assert verdict.decision is (Decision.PROMOTE if is_kept else Decision.HOLD)
    assert ("it has forgotten too much" in verdict.reason) == (not is_kept)


def test_how_much_may_be_forgotten_is_the_domains_to_say() -> None:
    scores = [*beside_base(0.05, 0.05), *general(0.1)]
    assert decide(scores, SETTINGS, 1).decision is Decision.HOLD
    lax = replace(SETTINGS, max_forgetting=0.15)
    assert decide(scores, lax, 1).decision is Decision.PROMOTE


def test_general_text_that_cannot_be_scored_is_forgotten() -> None:
    scores = [*beside_base(0.05, 0.05), *general(math.inf)]
    assert decide(scores, SETTINGS, 1).decision is Decision.HOLD


def test_where_a_piece_was_scored_without_the_model_that_was_brought_nobody_is_promoted() -> None:
    scores = beside_base(0.05, 0.05)
    verdict = decide([replace(scores[0], base_nats=None), *scores[1:]], SETTINGS, 1)
    assert verdict.decision is Decision.ABSTAIN


def test_without_such_a_model_nothing_is_asked_and_the_files_are_what_they_were() -> None:
    scores = documents(random.Random(SEED), 0.05)
    given = {name: value for name, value in GIVEN.items() if name != "base"}
    verdict, text = decide_on(Material(scores, Findings()), given)
    told = json.loads(text)
    assert verdict.decision is Decision.PROMOTE
    assert not {Question.BEYOND_BASE, Question.KEEPS} & set(told["verdict"]["questions"])
    assert not {"base_bpb", "against_base", "forgetting"} & set(told["verdict"])
    assert "max_forgetting" not in told["settings"]
    assert "base_nats" not in score_lines(scores)


def test_a_verdict_is_explained_beside_the_model_that_was_brought() -> None:
    for incumbent in ("s" * 64, "b" * 64):
        given = {**GIVEN, "incumbent": incumbent, "candidate": "c" * 64}
        scores = [*beside_base(0.05, 0.05), *general(0.01)]
        _, text = decide_on(Material(scores, Findings()), given)
        told = "\n".join(explain(json.loads(text)))
        assert "brought model" in told
        assert ("last student  " in told) == (incumbent == "s" * 64)
        assert "Is it better than the model that was brought? PASSED" in told
        assert "eneral text takes 1.5150 bits per byte, 1.5000 with the model" in told
        assert "Scored on 12 passages of text" in told


def test_the_scores_are_read_again_as_they_were_and_decide_the_same() -> None:
    scores = [*beside_base(0.05, 0.04), *general(0.01)]
    again = read_score_lines([score_lines(scores)])
    first, text = decide_on(Material(scores, Findings()), GIVEN)
    second, text_again = decide_on(Material(again, Findings()), GIVEN)
    assert (first.decision, text) == (second.decision, text_again)
    assert json.loads(text)["verdict"]["base_bpb"] == pytest.approx(first.base_bpb)
