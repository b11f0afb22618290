"""A judge that may break a tie: when it is heard, and what its answers come to."""

import random
from dataclasses import replace
from itertools import product

import pytest

from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.decision import AnswerOutcome, Decision, Question
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.sign_flips import chance_bounds, flipped_tail
from jupiterd.cycle.gate.tie_break import Judged, try_judge, weigh
from jupiterd.cycle.gate.verdict import decide
from jupiterd.cycle.judge.pair import Pair, PairKind
from tests.bench.cycle.drawn_candidates import HeldOut
from tests.bench.cycle.drawn_judges import (
    COIN,
    FIRST_PLACE,
    GOOD,
    NARROW,
    PARTIAL,
    Answers,
    cycles_with,
)
from tests.support.cycle.gate_material import SETTINGS, documents, gaps

WORKS = Sanity(loads=True, completions=8)
TIED = documents(random.Random(3), 0.003, noise_bpb=0.005)
"""A gain below the margin of 0.005, and a loss of it ruled out."""

OURS, THEIRS, FIRST, NOTHING = ("1", "2"), ("2", "1"), ("1", "1"), ("", "well")


def planted(right: int, wrong: int = 0, same_place: int = 0, unreadable: int = 0) -> list[Pair]:
    replies = [OURS] * right + [THEIRS] * wrong + [FIRST] * same_place + [NOTHING] * unreadable
    return [
        Pair(
            PairKind.SHUFFLED if n % 2 else PairKind.FOREIGN, f"p{n}", f"c{n}", "b", "o", "t", said
        )
        for n, said in enumerate(replies)
    ]


def students(wins: int, losses: int, ties: int = 0, in_cluster: int = 1) -> list[Pair]:
    replies = [OURS] * wins + [THEIRS] * losses + [FIRST] * ties
    return [
        Pair(PairKind.STUDENTS, f"s{n}", f"c{n // in_cluster}", "b", "o", "t", said)
        for n, said in enumerate(replies)
    ]


def verdict(pairs=(), scores=TIED, why_not="", **findings):
    found = Findings(**{"sanity": WORKS, "judged": Judged("oak", pairs, why_not), **findings})
    return decide(scores, SETTINGS, 1, found)


def test_signs_are_tossed_exactly() -> None:
    for balances in ([3, -1, 2, 0, 1], [1] * 8, [5, 5, -2], [0, 0], []):
        signs = product((1, -1), repeat=len(balances))
        sums = [sum(s * abs(each) for s, each in zip(way, balances, strict=True)) for way in signs]
        expected = sum(each >= sum(balances) for each in sums) / len(sums)
        assert flipped_tail(balances) == pytest.approx(expected)


def test_with_one_pair_of_each_cluster_it_is_the_sign_test_with_its_bounds() -> None:
    assert flipped_tail([1] * 8 + [-1] * 2) == 56 / 1024
    lower, upper = chance_bounds([1] * 8 + [-1] * 2, 0.025)
    assert (lower, upper) == (pytest.approx(0.4439, abs=1e-4), pytest.approx(0.9748, abs=1e-4))
    assert chance_bounds([1] * 10, 0.025)[1] == 1.0
    assert chance_bounds([-1] * 10, 0.025)[0] == 0.0
    assert chance_bounds([], 0.025) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_and_test_never_contradict_each_other(seed: int) -> None:
    source = random.Random(seed)
    balances = [source.randint(-4, 5) for _ in range(source.randint(1, 30))]
    lower, upper = chance_bounds(balances, 0.0152)
    assert (flipped_tail(balances) < 0.0152) == (lower > 0.5)
    assert 0 <= lower < upper <= 1


def test_wins_of_one_cluster_count_little() -> None:
    assert weigh(Judged("oak", planted(120) + students(30, 0)), 0.01).preference.is_won
    clustered = weigh(Judged("oak", planted(120) + students(30, 0, in_cluster=10)), 0.01)
    assert clustered.preference is not None
    assert clustered.preference.p == 1 / 8
    assert not clustered.preference.is_won


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        (planted(108, 12), ""),
        (planted(120), ""),
        (planted(102, 18), "in both orders of 102 of 120 planted pairs, which doesn't rule out"),
        (planted(60, 60), "in both orders of 60 of 120 planted pairs"),
        (planted(107, 0, same_place=13), "it contradicted itself in 13 of 120 planted pairs"),
        (planted(107, 0, unreadable=13), "it contradicted itself in 13 of 120 planted pairs"),
        (planted(0, same_place=120), "in both orders of 0 of 120 planted pairs"),
        (planted(13), "in both orders of 13 of 13 planted pairs"),
        (planted(14), ""),
        ([], "in both orders of 0 of 0 planted pairs"),
    ],
)
def test_only_a_judge_that_is_clearly_good_is_heard(pairs: list[Pair], told: str) -> None:
    trial = try_judge(pairs)
    assert told in trial.trouble
    assert bool(trial.trouble) == bool(told)


def test_what_a_judge_did_on_planted_pairs_is_counted() -> None:
    trial = try_judge(planted(right=100, wrong=10, same_place=6, unreadable=4))
    assert (trial.right, trial.wrong, trial.inconsistent, trial.unreadable) == (100, 10, 10, 8)
    assert trial.named_first == 100 + 10 + 12
    assert sum(right for _, right in trial.right_by_kind.values()) == 100


def test_where_no_judge_is_named_a_tie_is_held_and_the_verdict_has_nothing_of_one() -> None:
    found = verdict(judged=None)
    assert found.decision is Decision.HOLD
    assert list(found.questions) == ["G0", "G1", "G2", "G3"]
    assert found.tie_break is None
    assert not found.is_tied


def test_a_tie_waits_for_the_judge() -> None:
    found = verdict()
    assert found.decision is Decision.HOLD
    assert found.is_tied
    assert found.questions[Question.BETTER].outcome is AnswerOutcome.TIED
    assert "no judge has been asked yet" in found.reason


def test_a_judge_that_prefers_the_candidate_promotes_it_but_not_to_be_the_one_to_beat() -> None:
    found = verdict(planted(120) + students(40, 15, 45))
    assert found.decision is Decision.PROMOTE
    assert "the judge oak prefers the candidate's in 40, the last student's in 15" in found.reason
    assert found.questions[Question.PREFERRED].outcome is AnswerOutcome.PASSED
    assert not found.passed(Question.BETTER)


@pytest.mark.parametrize("pairs", [students(25, 20), students(15, 40), students(0, 0, 50), []])
def test_one_that_does_not_holds_it(pairs: list[Pair]) -> None:
    found = verdict(planted(120) + pairs)
    assert found.decision is Decision.HOLD
    assert found.tie_break is not None
    assert found.tie_break.preference is not None


def test_one_that_judges_badly_abstains_and_the_verdict_says_so() -> None:
    found = verdict(planted(70, 50) + students(50, 0))
    assert found.decision is Decision.HOLD
    assert "the judge oak abstains: it named the real text in both orders of 70 of 120" in (
        found.reason
    )
    assert found.tie_break is not None
    assert found.tie_break.preference is None


def test_why_nobody_was_asked_is_told() -> None:
    assert (
        "the judge couldn't be had: it is down"
        in verdict(why_not="the judge couldn't be had: it is down").reason
    )


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({"scores": documents(random.Random(3), 0.05)}, Decision.PROMOTE),
        ({"scores": documents(random.Random(3), -0.05)}, Decision.REJECT),
        ({"scores": documents(random.Random(3), 0.0, noise_bpb=0.05)}, Decision.HOLD),
        ({"scores": documents(random.Random(3), 0.003, -0.03, noise_bpb=0.005)}, Decision.HOLD),
        ({"scores": TIED[:10]}, Decision.ABSTAIN),
        ({"sanity": Sanity(loads=True, completions=8, looping=8)}, Decision.REJECT),
        ({"cloze": gaps(only_candidate=10, only_generator=40)}, Decision.HOLD),
    ],
)
def test_it_never_overrules_what_was_shown_nor_a_veto(changes, decision: Decision) -> None:
    adores = planted(120) + students(100, 0)
    found = verdict(adores, **changes)
    assert found.decision is decision
    assert found.questions[Question.PREFERRED].outcome is AnswerOutcome.NOT_ASKED
    assert not found.is_tied


def test_it_does_not_overrule_a_stratum_that_got_worse() -> None:
    worse = [replace(each, stratum="maths") for each in documents(random.Random(4), -0.03)[:10]]
    worse = [replace(each, id=f"m{n}", cluster=f"m{n}") for n, each in enumerate(worse)]
    rest = documents(random.Random(3), 0.006, noise_bpb=0.005, count=200)
    same = [replace(each, stratum="code") for each in worse]
    assert verdict(scores=[*rest, *same]).is_tied
    found = verdict(planted(120) + students(100, 0), [*rest, *worse])
    assert found.decision is Decision.HOLD
    assert not found.is_tied


SMALL = HeldOut((6, 5, 4, 3, *(2,) * 12, *(1,) * 10), paired_sd=NARROW)


def test_cycles_of_null_candidates_are_seldom_fooled_whatever_the_judge() -> None:
    """`make bench-cycle` draws more; 120 cycles at 5 % would be fooled 6 times."""
    for judge in (COIN, FIRST_PLACE, GOOD):
        found = cycles_with(random.Random(11), judge, SMALL, 0.005, 40, rounds=4)
        assert found.fooled <= 2
        assert found.ties > 100
        heard = found.ties - found.abstained
        assert heard / found.ties > 0.95 if judge is GOOD else heard == 0


def test_a_good_judge_finds_the_better_student_among_ties() -> None:
    better = Answers(win_chance=0.8, cluster_spread=0.1)
    found = cycles_with(random.Random(12), GOOD, SMALL, 0.003, 40, rounds=1, answers=better)
    assert found.by_judge >= 0.8 * found.ties > 20


def test_a_partial_judge_promotes_none_that_is_worse_by_the_margin() -> None:
    found = cycles_with(random.Random(13), PARTIAL, SMALL, -SMALL.settings.margin_bpb, 60, rounds=4)
    assert found.fooled <= 3
