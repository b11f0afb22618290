"""Whether text can be judged is said from what would be held out of it."""

import math
from dataclasses import replace

import pytest

from jupiterd.cycle.holdout.clusters import path_of_file
from jupiterd.cycle.holdout.holdout_choice import plan_holdout
from jupiterd.cycle.holdout.holdout_forecast import holdout_forecast
from jupiterd.cycle.holdout.holdout_plan import Collected
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules, least_documents
from jupiterd.cycle.holdout.paired_spread import BROUGHT, FIRST, LATER, Comparison, detectable_bpb
from jupiterd.cycle.holdout.verdict_check import Found
from jupiterd.cycle.holdout.verdict_forecast import TextCounts, verdict_forecast

RULES = HoldoutRules("salt")


def collected(documents, folders=6):
    names = [f"f{n % folders}/{n}.md" for n in range(documents)]
    return [Collected(path_of_file(name), 9400, n) for n, name in enumerate(names)]


def counts(documents, rules=RULES):
    found = holdout_forecast(collected(documents), rules)
    return TextCounts(documents, documents * 9400, found)


def test_too_few_documents_are_told_with_what_would_do():
    forecast = verdict_forecast(counts(17), RULES)
    assert not forecast.can_be_judged
    assert forecast.answer.startswith("17 documents, about 39,950 tokens; a verdict needs at least")
    assert forecast.help == "add text, or start with --without-verdict"
    assert math.isinf(forecast.first_bpb)
    assert math.isinf(forecast.later_bpb)


def test_nothing_at_all_can_not_be_judged():
    assert not verdict_forecast(TextCounts(0, 0, Found()), RULES).can_be_judged


def test_sixty_documents_can_be_judged_and_more_see_more():
    seen = [verdict_forecast(counts(n), RULES) for n in (60, 120, 400, 4000)]
    assert all(forecast.can_be_judged for forecast in seen)
    assert seen[0].gate_documents == 15
    for which in ("first_bpb", "later_bpb"):
        found = [getattr(forecast, which) for forecast in seen]
        assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("documents", range(10, 130, 3))
def test_what_is_foretold_is_what_is_planned(documents):
    text = collected(documents)
    plan, _ = plan_holdout(text, RULES)
    held = sum(plan.part_of(each.path) == "gate" for each in text)
    forecast = verdict_forecast(counts(documents), RULES)
    assert forecast.can_be_judged == (documents >= least_documents(RULES))
    assert held == forecast.gate_documents


def test_copies_are_held_out_once_and_not_at_all_beside_one_that_is_trained_on():
    text = collected(120)
    copied = [*text, *(replace(each, path=(f"x{n}",)) for n, each in enumerate(text[:60]))]
    found, single = holdout_forecast(copied, RULES), holdout_forecast(text, RULES)
    assert found.documents == 180
    assert found.held_out <= single.held_out + 5


def test_what_the_domain_asks_for_counts():
    strict = HoldoutRules("salt", min_documents=400, min_clusters=40)
    assert not verdict_forecast(counts(400, strict), strict).can_be_judged
    assert least_documents(strict) == 1334
    assert least_documents(HoldoutRules("s", fraction=0.1, dev=0.25, vault=0.25)) == 240


def test_later_looks_see_less():
    found = [detectable_bpb(30, 30, RULES, Comparison(look)) for look in (1, 2, 5, 20)]
    assert found == sorted(found)
    assert math.isinf(detectable_bpb(30, 1, RULES))


def test_a_gain_over_counting_has_to_be_larger_than_one_over_the_student_before():
    assert detectable_bpb(30, 30, RULES, FIRST) > 2 * detectable_bpb(30, 30, RULES, LATER)
    forecast = verdict_forecast(counts(120), RULES)
    assert forecast.first_bpb > 2 * forecast.later_bpb
    assert forecast.answer == (
        "yes: 37 of 120 documents are held out, 30 of them for the gate; it shows, with a chance "
        f"of 80%, a gain from about {forecast.first_bpb:.2g} bits per byte in round 1 (over "
        f"counting) and from {forecast.later_bpb:.2g} in later rounds (over the student before)"
    )


def test_a_bound_that_no_round_comes_to_is_no_promise():
    few = replace(counts(120).found, effective_clusters=2.0)
    assert detectable_bpb(few.gate_documents, 2.0, RULES, LATER) > 1
    assert "and hardly any in later rounds" in few.promise(RULES)


def test_what_a_verdict_has_measured_counts_more_than_what_is_usual():
    measured = Comparison(3, beside_student=True, standard_error_bpb=0.002)
    found = counts(120).found
    seen = detectable_bpb(found.gate_documents, found.effective_clusters, RULES, measured)
    assert 0.005 + 2 * 0.002 < seen < 0.03
    assert found.promise(RULES, measured) == (
        f"it shows, with a chance of 80%, a gain from about {seen:.2g} bits per byte over the "
        "student before, as the last verdict measured"
    )
    again = Comparison(2, standard_error_bpb=0.03)
    assert "now (over counting, as the last verdict measured) and from " in (
        found.promise(RULES, again)
    )


def test_a_model_that_was_brought_is_what_round_1_is_measured_against():
    forecast = verdict_forecast(counts(120), RULES, BROUGHT)
    assert forecast.first_bpb < forecast.later_bpb < 0.1
    assert (
        f"{forecast.first_bpb:.2g} bits per byte in round 1 (over the model that was brought)"
        in (forecast.answer)
    )


def test_scaled_figures_are_told_as_such():
    forecast = verdict_forecast(replace(counts(120), is_scaled=True), RULES)
    assert forecast.answer.startswith(
        "yes: about 37 of about 120 documents are held out, about 30 of them for the gate; "
    )


def test_a_part_that_leaves_much_open_is_told_with_its_bounds():
    few, many = (holdout_forecast(collected(n), RULES) for n in (60, 200))
    forecast = verdict_forecast(
        replace(counts(120), is_scaled=True, other_cases=(few, many)), RULES
    )
    least, most = (found.detectable_bpb(RULES, FIRST) for found in (many, few))
    assert forecast.answer.startswith("yes: about 37 of about 120 documents are held out")
    assert forecast.answer.endswith(
        "; only a part was read, so it may be 15 to 50 documents for the gate and a gain from "
        f"{least:.2g} to {most:.2g}"
    )
    near = replace(counts(120), is_scaled=True, other_cases=(counts(118).found,))
    assert "only a part" not in verdict_forecast(near, RULES).answer


def test_what_may_be_enough_is_never_told_as_a_no():
    few, enough = (holdout_forecast(collected(n), RULES) for n in (35, 60))
    probably = verdict_forecast(replace(counts(60), is_scaled=True, other_cases=(few,)), RULES)
    assert probably.can_be_judged
    assert probably.answer.startswith("probably: about ")
    assert probably.answer.endswith(", or too few for a verdict")
    known_not = verdict_forecast(counts(35), RULES)
    assert (known_not.can_be_judged, known_not.may_be_judged) == (False, False)
    may_be = verdict_forecast(replace(counts(35), is_scaled=True, other_cases=(enough,)), RULES)
    assert (may_be.can_be_judged, may_be.may_be_judged) == (False, True)
    assert may_be.answer.endswith("; only a part was read, so it may be enough")


def test_what_lacks_is_told_beside_what_there_is():
    found = Found(200, 1_000_000, gate_documents=30, gate_clusters=4, effective_clusters=3.0)
    assert verdict_forecast(TextCounts(190, 900_000, found), RULES).answer == (
        "190 documents, about 225,000 tokens; a verdict needs 12 documents from 6 clusters for the "
        "gate, and it would have 30 from 4"
    )
