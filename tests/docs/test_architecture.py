"""ARCHITECTURE.md names what is there, and stays short enough to be read."""

import re

import pytest

from jupiterd.cluster.facts import facts, outer_step_facts
from tests.docs.pages import ROOT, inline_code, prose

PAGE = ROOT / "ARCHITECTURE.md"
MOST_WORDS = 4_000
_PATH = re.compile(r"[a-z_][a-z_0-9.]*(?:/[a-z_0-9.]*)+")
_FACT = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")

NAMED = sorted({code for code in inline_code(PAGE) if _PATH.fullmatch(code)})
NO_FACTS = {"RunWork"}
"""A call between nodes."""
NO_PATHS = {"jupiter/v1", "r2/filter/0"}


def test_it_is_short_enough_to_be_read():
    assert len(PAGE.read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("named", [each for each in NAMED if each not in NO_PATHS])
def test_every_module_and_folder_that_it_names_is_there(named):
    places = [base / named for base in (ROOT, ROOT / "jupiterd")]
    assert any(place.exists() or place.with_name(f"{place.name}.py").exists() for place in places)


def test_every_fact_that_it_names_can_be_recorded():
    told = set(_FACT.findall(prose(PAGE)))
    known = {name for module in (facts, outer_step_facts) for name in vars(module)}
    assert "CycleStarted" in told
    assert not told - known - NO_FACTS
