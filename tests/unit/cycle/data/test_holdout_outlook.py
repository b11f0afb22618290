"""Whether text can be judged is said from counts alone."""

import math

import pytest

from jupiterd.cycle.data.clusters import levels_of, path_of_file
from jupiterd.cycle.data.holdout_choice import plan_holdout
from jupiterd.cycle.data.holdout_outlook import (
    TextCounts,
    detectable_bpb,
    holdout_outlook,
    least_documents,
)
from jupiterd.cycle.data.holdout_plan import Collected
from jupiterd.cycle.data.holdout_rules import HoldoutRules

RULES = HoldoutRules("salt")


def counts(documents, folders=6):
    paths = [path_of_file(f"f{n % folders}/{n}.md") for n in range(documents)]
    return TextCounts(documents, documents * 9400, levels_of(paths))


def test_too_few_documents_are_told_with_what_would_do():
    outlook = holdout_outlook(counts(17), RULES)
    assert not outlook.can_be_judged
    assert outlook.answer.startswith("17 documents, about 39,950 tokens; a verdict needs at least")
    assert outlook.help == "add text, or start with --without-verdict"
    assert math.isinf(outlook.detectable_bpb)


def test_nothing_at_all_can_not_be_judged():
    assert not holdout_outlook(TextCounts(0, 0, ()), RULES).can_be_judged


def test_sixty_documents_can_be_judged_and_more_see_more():
    seen = [holdout_outlook(counts(n), RULES) for n in (60, 120, 400, 4000)]
    assert all(outlook.can_be_judged for outlook in seen)
    assert seen[0].gate_documents == 15
    found = [outlook.detectable_bpb for outlook in seen]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("documents", range(10, 130, 3))
def test_what_is_foretold_is_what_is_planned(documents):
    names = [f"f{n % 6}/{n}.md" for n in range(documents)]
    text = [Collected(path_of_file(name), 9400, n) for n, name in enumerate(names)]
    plan, _ = plan_holdout(text, RULES)
    held = sum(plan.part_of(each.path) == "gate" for each in text)
    outlook = holdout_outlook(counts(documents), RULES)
    assert outlook.can_be_judged == (documents >= least_documents(RULES))
    if outlook.can_be_judged:
        assert held == outlook.gate_documents


def test_what_the_domain_asks_for_counts():
    strict = HoldoutRules("salt", min_documents=400, min_clusters=40)
    assert not holdout_outlook(counts(400), strict).can_be_judged
    assert least_documents(strict) == 1334
    assert least_documents(HoldoutRules("s", fraction=0.1, dev=0.25, vault=0.25)) == 240


def test_later_looks_see_less():
    found = [detectable_bpb(30, 30, RULES, look) for look in (1, 2, 5, 20)]
    assert found == sorted(found)
    assert math.isinf(detectable_bpb(30, 1, RULES))
