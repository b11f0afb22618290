from typing import get_args

import pytest

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.domain.domain import domain_mistakes, parse_domain
from jupiterd.cycle.domain.filters import judge_text
from jupiterd.cycle.text_rules.rules_off import RuleName, rules_off
from tests.support.cycle.prose import GOOD

DOMAIN = """version: 1
title: Notes
language: en
data_sources: [{kind: python_stdlib}]
holdout: {salt: a}
"""
NEVER_OFF = {
    DropReason.PURGED,
    DropReason.LICENSE,
    DropReason.IN_HOLDOUT,
    DropReason.DUPLICATE,
    DropReason.NEAR_DUPLICATE,
    DropReason.QUALITY,
}


def test_every_rule_about_one_text_can_be_put_out_of_force() -> None:
    assert set(get_args(RuleName)) == set(map(str, set(DropReason) - NEVER_OFF))


@pytest.mark.parametrize(
    ("written", "off"),
    [
        ("{}", set[DropReason]()),
        ("{few-letters: off, stub: off}", {DropReason.FEW_LETTERS, DropReason.STUB}),
    ],
)
def test_a_domain_names_the_rules_that_are_not_asked(written: str, off: set[DropReason]) -> None:
    domain = parse_domain(f"{DOMAIN}filters: {{rules: {written}}}\n", "notes.yaml")
    assert domain.filters.off == off


def test_minimal_leaves_what_is_of_no_use_for_the_domain_out() -> None:
    domain = parse_domain(f"{DOMAIN}filters: {{rules: minimal}}\n", "notes.yaml")
    in_force = set(DropReason) - domain.filters.off - NEVER_OFF
    assert in_force == {
        DropReason.TOO_LONG,
        DropReason.OTHER_LANGUAGE,
        DropReason.VENDORED,
        DropReason.DATA,
    }


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        ("{few-leters: off}", "got few-leters; did you mean few-letters?"),
        ("{stub: 7}", "got 7 for stub"),
        ("maximal", "got maximal"),
        ("{license: off}", "got license"),
    ],
)
def test_what_is_no_rule_is_a_mistake_with_its_line(wrong: str, got: str) -> None:
    (mistake,) = domain_mistakes(f"{DOMAIN}filters: {{rules: {wrong}}}\n", "notes.yaml")
    assert mistake.startswith("notes.yaml:6: filters.rules: expected minimal, or rules")
    assert mistake.endswith(got)


def test_a_rule_that_is_off_drops_nothing_and_the_next_one_still_does() -> None:
    short = "Pumps move water."
    assert judge_text(short, "en").reason is DropReason.TOO_SHORT
    without = judge_text(short, "en", off=frozenset({DropReason.TOO_SHORT}))
    assert without.reason is DropReason.SHORT_LINES
    assert judge_text(short, "en", off=rules_off("minimal")).reason is None


def test_an_empty_text_is_dropped_whatever_is_off() -> None:
    assert judge_text(" \n", "en", off=rules_off("minimal")).reason is DropReason.TOO_SHORT


def test_what_is_dropped_says_what_was_measured_and_the_limit() -> None:
    judgement = judge_text(" ".join(GOOD.split()[:20]), "en")
    assert judgement.reason is DropReason.TOO_SHORT
    assert (judgement.measure, judgement.limit) == ("words", 50)
    assert 15 < judgement.value <= 20
