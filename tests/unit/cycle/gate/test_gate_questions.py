"""The questions G0 to G3, and what the verdict says of each."""

import random
from dataclasses import replace

import pytest

from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.decision import AnswerOutcome, Decision, Question
from jupiterd.cycle.gate.fill_ins import compare_cloze, half_tail
from jupiterd.cycle.gate.proxy import Taught
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.verdict import decide
from tests.support.cycle.gate_material import SETTINGS, documents, gaps, students

WORKS = Sanity(loads=True, completions=8)


def better(generator_saved_bpb=None, **findings):
    """Return the verdict on a candidate that is clearly better than the last student."""
    scores = documents(random.Random(3), 0.05, generator_saved_bpb)
    return decide(scores, SETTINGS, 1, Findings(**{"sanity": WORKS, **findings}))


def outcomes(verdict):
    return [answer.outcome for answer in verdict.questions.values()]


def test_a_candidate_that_passes_all_that_was_asked_is_promoted_and_what_was_not_is_shown():
    verdict = better()
    assert verdict.decision is Decision.PROMOTE
    assert list(verdict.questions) == ["G0", "G1", "G2", "G3"]
    assert outcomes(verdict) == [AnswerOutcome.PASSED] * 3 + [AnswerOutcome.NOT_RUN]
    assert verdict.teaching is None


@pytest.mark.parametrize(
    ("sanity", "told"),
    [
        (Sanity(loads=False, trouble="no weights"), "the candidate doesn't load: no weights"),
        (Sanity(loads=True, completions=8, looping=5), "5 of the candidate's 8 completions repeat"),
        (Sanity(loads=True, completions=8, looping=2, empty=3), "and 3 are empty"),
    ],
)
def test_a_candidate_that_does_not_work_is_rejected_however_well_it_scores(sanity, told):
    verdict = better(sanity=sanity)
    assert verdict.decision is Decision.REJECT
    assert told in verdict.reason
    assert outcomes(verdict) == [AnswerOutcome.FAILED] + [AnswerOutcome.NOT_ASKED] * 3


def test_half_of_the_completions_may_go_wrong():
    assert better(sanity=Sanity(loads=True, completions=8, looping=4)).decision is Decision.PROMOTE


def test_better_than_the_last_student_and_worse_than_the_generator_is_held():
    verdict = better(generator_saved_bpb=-0.03)
    assert verdict.decision is Decision.HOLD
    assert verdict.passed(Question.BETTER)
    assert verdict.reason.startswith("not shown to be within 0.005 of the generator in force")
    assert verdict.generator_bpb < verdict.val_bpb < verdict.incumbent_bpb


def test_as_good_as_the_generator_is_enough():
    verdict = better(generator_saved_bpb=0.001)
    assert verdict.decision is Decision.PROMOTE
    assert verdict.against_generator is not None
    assert verdict.against_generator.mean_improvement_bpb == pytest.approx(0.001, abs=0.004)


def test_filling_gaps_worse_than_the_generator_is_held():
    verdict = better(cloze=gaps(only_candidate=10, only_generator=30, both=360))
    assert verdict.decision is Decision.HOLD
    assert verdict.reason == (
        "worse than the generator at gaps: fills 370 of 400 gaps rightly, the generator 390"
    )
    assert better(cloze=gaps(22, 30, 348)).decision is Decision.PROMOTE


def test_a_fair_coin_is_reckoned_exactly():
    assert half_tail(0, 0) == 1.0
    assert half_tail(8, 10) == 56 / 1024
    assert half_tail(600, 1000) == pytest.approx(1.3642e-10, rel=1e-3)
    found = compare_cloze(gaps(2, 8, 5))
    assert found is not None
    assert (found.only_candidate, found.only_generator, found.p_worse) == (2, 8, 56 / 1024)
    assert compare_cloze([]) is None


def test_what_small_students_learn_decides_where_it_was_measured():
    teaches = students(candidate=(2.01, 2.1), incumbent=(2.02, 2.09))
    verdict = better(taught=Taught(teaches))
    assert verdict.decision is Decision.PROMOTE
    assert verdict.passed(Question.TEACHES)
    spoils = students(candidate=(2.05, 2.15), incumbent=(1.99, 2.09))
    verdict = better(taught=Taught(spoils))
    assert verdict.decision is Decision.HOLD
    assert verdict.reason.startswith(
        "small students learn less with its text than with the generator's: -0.0600 bits per byte"
    )
    assert verdict.passed(Question.BETTER)


def test_too_little_generated_text_holds_no_candidate_back():
    runs = students(candidate=(2.05, 2.15), incumbent=(1.99, 2.09), mix=(2.2, 2.3), real=(2.0, 2.1))
    little = [replace(run, synthetic_share=min(run.synthetic_share, 0.005)) for run in runs]
    verdict = better(taught=Taught(little))
    assert verdict.decision is Decision.PROMOTE
    assert verdict.questions[Question.TEACHES].outcome is AnswerOutcome.NOT_RUN
    assert (
        "generated text is 0.5% of the small students' text"
        in verdict.questions[Question.TEACHES].reason
    )
    assert verdict.control is None, "it would show nothing but chance"


def test_where_nobody_is_in_force_its_text_is_compared_with_real_text_alone():
    verdict = better(taught=Taught(students(candidate=(2.1, 2.2), real=(2.0, 2.1))))
    assert verdict.decision is Decision.HOLD
    assert "than with real text alone" in verdict.reason
    assert verdict.teaching.theirs == "real"


def test_the_control_of_a_round_is_told_and_decides_nothing_about_the_candidate():
    runs = students(mix=(2.2, 2.3), real=(2.0, 2.1), candidate=(2.1, 2.2), incumbent=(2.1, 2.2))
    verdict = better(taught=Taught(runs))
    assert verdict.decision is Decision.PROMOTE
    assert verdict.control.is_worse
    assert verdict.teaching.theirs == "incumbent"
    assert verdict.teaching.gain_bpb == 0


def test_a_candidate_of_which_no_text_can_be_used_is_held():
    verdict = better(taught=Taught(wrote_nothing="nothing that it wrote passes the filters"))
    assert verdict.decision is Decision.HOLD
    assert verdict.reason == "nothing that it wrote passes the filters"


def test_why_no_small_students_were_needed_is_said():
    verdict = better(taught=Taught(why_not="not needed: the domain has no templates"))
    assert verdict.decision is Decision.PROMOTE
    answer = verdict.questions["G3"]
    assert (answer.outcome, answer.reason) == (
        AnswerOutcome.NOT_RUN,
        "not needed: the domain has no templates",
    )


def test_too_little_text_says_how_much_would_do():
    scores = documents(random.Random(4), 0.05, count=18, noise_bpb=0.04)
    verdict = decide(scores, SETTINGS, 1)
    assert verdict.decision is Decision.ABSTAIN
    assert verdict.reach is not None
    needed = verdict.reach.documents
    assert f"about {needed:,} documents of {verdict.reach.clusters:,} clusters" in verdict.reason
    # z = 2.16 + 0.84 standard errors of 0.04 / sqrt(n) are to be 0.005: n = 580, give or take the
    # error of a spread that 18 documents tell.
    assert 250 < needed < 1300


def test_that_much_text_does_show_it_four_times_in_five():
    source = random.Random(5)
    pilot = decide(documents(source, 0.0, count=300, noise_bpb=0.03), SETTINGS, 1).reach
    assert pilot is not None
    shown = sum(
        decide(
            documents(source, pilot.wanted_bpb, count=pilot.documents, noise_bpb=0.03), SETTINGS, 1
        ).decision
        is Decision.PROMOTE
        for _ in range(100)
    )
    assert 66 <= shown <= 94


def test_the_vault_is_beside_the_point_until_it_is_shown():
    assert better().vault is None


def test_an_improvement_that_the_vault_does_not_see_is_an_alarm_and_changes_no_verdict():
    source = random.Random(6)
    known = documents(source, 0.05)
    dev = documents(source, 0.05, part="dev")
    same = documents(source, 0.05, part="vault")
    worse = documents(source, 0.02, part="vault")
    calm, loud = (decide([*known, *dev, *part], SETTINGS, 1) for part in (same, worse))
    assert calm.decision is loud.decision is Decision.PROMOTE
    assert calm.vault is not None
    assert (calm.vault.is_alarm, calm.vault.known_part) == (False, "dev")
    assert loud.vault is not None
    assert loud.vault.is_alarm
    assert loud.vault.gap_bpb == pytest.approx(0.03, abs=0.01)
    assert loud.documents == len(known), "the vault's text decides nothing"


def test_a_gap_of_a_few_documents_is_noise_and_no_alarm():
    source = random.Random(6)
    known = documents(source, 0.05, noise_bpb=0.1)
    few = documents(source, 0.03, count=6, noise_bpb=0.1, part="vault")
    vault = decide([*known, *few], SETTINGS, 1).vault
    assert vault is not None
    assert vault.known_part == "gate"
    assert not vault.is_alarm
