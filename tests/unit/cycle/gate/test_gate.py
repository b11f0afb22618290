import dataclasses
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.student_t import t_upper_quantile
from jupiterd.cycle.gate.alpha_spending import ledger_at, spent_alpha
from jupiterd.cycle.gate.case import GateSettings
from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.gate.paired import measure
from jupiterd.cycle.gate.scores import DocumentScore
from jupiterd.cycle.gate.strata import RARE_STRATUM
from jupiterd.cycle.gate.verdict import decide
from jupiterd.errors import Bug

SETTINGS = GateSettings(
    alpha=0.05, margin_bpb=0.005, stratum_veto_bpb=0.02, min_documents=20, min_clusters=5
)
DOCUMENT_BYTES = 1000
NATS_PER_BPB = math.log(2) * DOCUMENT_BYTES


def score(number, improvement_bpb, cluster, stratum="code", unigram_bpb=4.0, generator_bpb=None):
    return DocumentScore(
        id=f"{number:06}",
        cluster=str(cluster),
        stratum=stratum,
        bytes=DOCUMENT_BYTES,
        tokens=300,
        candidate_nats=(2.0 - improvement_bpb) * NATS_PER_BPB,
        incumbent_nats=2.0 * NATS_PER_BPB,
        generator_nats=(2.0 if generator_bpb is None else generator_bpb) * NATS_PER_BPB,
        byte_nats=3.0 * NATS_PER_BPB,
        unigram_nats=unigram_bpb * NATS_PER_BPB,
    )


def compared(scores, margin_bpb, alpha):
    """Return the paired test of these scores."""
    return measure(
        [row.improvement_bpb for row in scores], [row.cluster for row in scores], margin_bpb, alpha
    )


def cycle_of(source, mean, sizes, cluster_sd=0.03, document_sd=0.03):
    """Return one candidate's scores: documents of a cluster share an error."""
    scores = []
    for cluster, size in enumerate(sizes):
        shared = source.gauss(mean, cluster_sd)
        scores += [
            score(len(scores) + number, shared + source.gauss(0, document_sd), cluster)
            for number in range(size)
        ]
    return scores


def test_the_looks_together_spend_alpha():
    assert sum(spent_alpha(0.05, look) for look in range(1, 100_000)) == pytest.approx(
        0.05, rel=1e-4
    )
    with pytest.raises(Bug):
        spent_alpha(0.05, 0)


def test_the_ledger_says_what_was_spent_and_what_is_left():
    ledger = ledger_at(0.05, 3)
    assert ledger.spent_before == pytest.approx(spent_alpha(0.05, 1) + spent_alpha(0.05, 2))
    assert ledger.spent_before + ledger.this_look + ledger.left == pytest.approx(0.05)
    assert ledger.for_each_test == spent_alpha(0.05, 3) / 2


def test_the_numbers_are_those_of_a_worked_example():
    # Two clusters of two: mean 0.25, cluster sums of errors -0.3 and 0.3, so that
    # variance = 1/2 * (0.3^2 + 0.3^2) / 2^2 = 0.0225, the usual 2/1 * (0.3^2 + 0.3^2) / 4^2 too.
    scores = [score(n, d, n // 2) for n, d in enumerate([0.1, 0.1, 0.3, 0.5])]
    evidence = compared(scores, 0.005, 0.025)
    assert evidence.mean_improvement_bpb == pytest.approx(0.25)
    assert evidence.standard_error_bpb == pytest.approx(0.15)
    assert evidence.degrees_of_freedom == 1
    assert evidence.t == pytest.approx(0.245 / 0.15)
    assert evidence.lower_bound_bpb == pytest.approx(0.25 - 12.7062 * 0.15, abs=1e-4)
    assert evidence.p == pytest.approx(0.5 - math.atan(0.245 / 0.15) / math.pi)


def test_a_clearly_better_candidate_is_promoted():
    verdict = decide(cycle_of(random.Random(1), 0.1, [3] * 30), SETTINGS, 1)
    assert verdict.decision is Decision.PROMOTE
    assert verdict.evidence is not None
    assert verdict.evidence.p < verdict.alpha_spent
    assert verdict.val_bpb == pytest.approx(1.9, abs=0.02)
    assert verdict.incumbent_bpb == pytest.approx(2.0)
    assert verdict.byte_bpb == pytest.approx(3.0)
    assert verdict.unigram_bpb == pytest.approx(4.0)
    assert (verdict.documents, verdict.clusters, verdict.bytes) == (90, 30, 90_000)
    assert verdict.reason.startswith("better by more than 0.005: improvement +0.10")


def test_a_clearly_worse_candidate_is_rejected():
    verdict = decide(cycle_of(random.Random(1), -0.1, [3] * 30), SETTINGS, 1)
    assert verdict.decision is Decision.REJECT
    assert verdict.reason.startswith("worse than the incumbent: improvement -0.")


def test_an_improvement_within_the_margin_is_held_however_sure():
    scores = [score(n, 0.004 + 0.0001 * (n % 3), n // 3) for n in range(90)]
    verdict = decide(scores, SETTINGS, 1)
    assert verdict.decision is Decision.HOLD
    assert verdict.evidence is not None
    assert verdict.evidence.lower_bound_bpb > 0


def test_later_looks_ask_for_more():
    scores = cycle_of(random.Random(3), 0.025, [3] * 30)
    decisions = [decide(scores, SETTINGS, look).decision for look in (1, 40)]
    assert decisions == [Decision.PROMOTE, Decision.HOLD]


def test_a_stratum_that_got_worse_vetoes():
    scores = [score(n, 0.1 + 0.001 * (n % 7), n // 3) for n in range(90)]
    scores += [score(100 + n, -0.03, 50 + n // 3, stratum="notes") for n in range(12)]
    verdict = decide(scores, SETTINGS, 1)
    assert verdict.decision is Decision.HOLD
    assert verdict.reason.endswith("0.0300 worse in notes")
    assert verdict.strata["notes"] == pytest.approx(-0.03)


def test_a_stratum_of_a_few_documents_vetoes_nothing():
    scores = [score(n, 0.1 + 0.001 * (n % 7), n // 3) for n in range(90)]
    scores += [score(100 + n, -0.03, 50, stratum="notes") for n in range(9)]
    verdict = decide(scores, SETTINGS, 1)
    assert verdict.decision is Decision.PROMOTE
    assert "notes" not in verdict.strata


def test_getting_worse_on_the_rarest_text_vetoes_though_the_mean_is_better():
    rare = [score(n, -0.05, n // 3, unigram_bpb=6.0) for n in range(25)]
    rest = [score(25 + n, 0.3 + 0.001 * (n % 7), 20 + n // 3) for n in range(75)]
    verdict = decide(rare + rest, SETTINGS, 1)
    assert verdict.decision is Decision.HOLD
    assert verdict.reason.endswith(f"0.0500 worse in {RARE_STRATUM}")


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ([3] * 6, "18 held-out documents are below the 20 asked for; about "),
        ([10] * 4, "held-out text from 4 clusters is less than the 5 asked for; about "),
        ([], "0 held-out documents are below the 20 asked for"),
    ],
)
def test_too_little_evidence_abstains(sizes, reason):
    verdict = decide(cycle_of(random.Random(1), 0.5, sizes), SETTINGS, 1)
    assert verdict.decision is Decision.ABSTAIN
    assert verdict.reason.startswith(reason)


def test_one_cluster_abstains_even_where_the_domain_asks_for_one():
    settings = dataclasses.replace(SETTINGS, min_clusters=1)
    verdict = decide(cycle_of(random.Random(1), 0.5, [30]), settings, 1)
    assert verdict.decision is Decision.ABSTAIN
    assert verdict.evidence is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_candidate_without_a_finite_score_is_rejected(bad):
    scores = cycle_of(random.Random(1), 0.5, [3] * 30)
    scores[4] = dataclasses.replace(scores[4], candidate_nats=bad)
    verdict = decide(scores, SETTINGS, 1)
    assert verdict.decision is Decision.REJECT
    assert verdict.reason == "the candidate gives no finite score on 1 of 90 documents"
    assert verdict.val_bpb == math.inf


def test_a_broken_incumbent_gives_no_verdict():
    scores = cycle_of(random.Random(1), 0.5, [3] * 30)
    scores[4] = dataclasses.replace(scores[4], incumbent_nats=math.inf)
    assert decide(scores, SETTINGS, 1).decision is Decision.ABSTAIN


def test_equal_models_are_held():
    verdict = decide([score(n, 0.0, n // 3) for n in range(90)], SETTINGS, 1)
    assert verdict.decision is Decision.HOLD


@given(st.permutations(range(30)))
def test_the_order_of_the_scores_plays_no_part(order):
    scores = cycle_of(random.Random(5), 0.05, [3] * 10)
    assert decide([scores[place] for place in order], SETTINGS, 2) == decide(scores, SETTINGS, 2)


def test_a_test_that_ignores_clusters_would_be_fooled():
    """The naive standard error promotes a null candidate many times as often as it says."""
    source = random.Random(21)
    sizes = [8] * 10
    alpha = 0.025
    naive = robust = 0
    for _ in range(400):
        scores = cycle_of(source, 0.0, sizes)
        alone = [dataclasses.replace(row, cluster=row.id) for row in scores]
        naive += compared(alone, 0.0, alpha).lower_bound_bpb > 0
        robust += compared(scores, 0.0, alpha).lower_bound_bpb > 0
    assert naive > 400 * alpha * 4
    assert robust <= 400 * alpha + 3 * math.sqrt(400 * alpha)


def test_one_huge_package_is_not_taken_for_many_clusters():
    """The usual formula with G - 1 degrees of freedom would promote too often here."""
    source = random.Random(22)
    sizes = [40, 25] + [1] * 30
    alpha = 0.03
    ours = usual = 0
    for _ in range(500):
        scores = cycle_of(source, 0.0, sizes)
        evidence = compared(scores, 0.0, alpha)
        ours += evidence.lower_bound_bpb > 0
        usual += usual_lower_bound(scores, alpha) > 0
    assert evidence.degrees_of_freedom < 5
    assert usual > 500 * alpha * 3
    assert ours <= 500 * alpha + 3 * math.sqrt(500 * alpha)


def usual_lower_bound(scores, alpha):
    """Return the bound that Cameron & Miller's formula with G - 1 degrees of freedom gives."""
    mean = sum(row.improvement_bpb for row in scores) / len(scores)
    errors = {}
    for row in scores:
        errors[row.cluster] = errors.get(row.cluster, 0) + row.improvement_bpb - mean
    count = len(errors)
    variance = count / (count - 1) * sum(e * e for e in errors.values()) / len(scores) ** 2
    return mean - t_upper_quantile(alpha, count - 1) * math.sqrt(variance)


def test_with_equal_clusters_the_bound_is_the_usual_one():
    scores = cycle_of(random.Random(9), 0.02, [4] * 12)
    bound = compared(scores, 0.0, 0.03).lower_bound_bpb
    assert bound == pytest.approx(usual_lower_bound(scores, 0.03), rel=1e-9)
