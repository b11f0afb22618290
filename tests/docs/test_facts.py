"""What pages say of checks, codes, sources and verdicts is so in the code."""

import re

import pytest
from ruamel.yaml import YAML

from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.gate.decision import Decision
from jupiterd.doctor import examination
from jupiterd.doctor.engines import MLX, NCCL, TORCH
from tests.docs.pages import ROOT, blocks, prose

DOCS = ROOT / "docs"
CHECKS = {*examination.CHECKS, TORCH, NCCL, MLX}

ASKED_FOR = (
    "CUDA out of memory", "GPU not detected", "slow sync", "rendezvous time-out",
    "NCCL error in WSL", "diverging loss", "`address in use`",
    "TensorBoard is unreachable from another PC",
    "no GPU figures in `monitor`", "`Attempting to unscale FP16 gradients`",
)  # fmt: skip
"""Symptoms that people of other systems came with."""


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of every row of the tables of a page whose first head is `heading`."""
    found: list[list[str]] = []
    is_in = False
    for line in prose(DOCS / page).splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        is_in = bool(cells) and (is_in or cells[0] == heading)
        if is_in and cells[0] != heading and not cells[0].startswith("---"):
            found.append(cells)
    return found


def test_every_symptom_has_a_cause_a_check_of_the_doctor_and_a_fix():
    symptoms = rows("troubleshooting.md", "symptom")
    assert len(symptoms) > 20
    for symptom, cause, checks, fix in symptoms:
        assert symptom
        assert cause
        assert fix
        named = re.findall(r"`([^`]+)`", checks)
        assert named, symptom
        assert set(named) <= CHECKS, symptom


def test_all_checks_of_the_doctor_lead_to_a_symptom():
    named = {
        name
        for row in rows("troubleshooting.md", "symptom")
        for name in re.findall(r"`([^`]+)`", row[2])
    }
    assert named == CHECKS


@pytest.mark.parametrize("symptom", ASKED_FOR)
def test_what_people_of_other_systems_ask_is_answered(symptom):
    assert any(symptom in row[0] for row in rows("troubleshooting.md", "symptom"))


def test_every_domain_in_a_page_is_one():
    found = [block for block in blocks(DOCS / "domains.md") if block.language == "yaml"]
    assert found
    for block in found:
        assert isinstance(parse_domain(block.text, "cooking.yaml"), Domain)


def test_the_page_of_domains_shows_where_it_is_said_that_nothing_is_generated():
    found = [block.text for block in blocks(DOCS / "domains.md") if block.language == "yaml"]
    domains = [parse_domain(text, "cooking.yaml") for text in found if "templates: []" in text]
    assert [len(domain.generation.templates or ()) for domain in domains] == [0]
    assert "generation" not in YAML(typ="safe").load(found[0]), "else the first four are"


def test_every_kind_of_source_is_named_and_no_other():
    told = {kind for row in rows("domains.md", "kind") for kind in re.findall(r"`([^`]+)`", row[0])}
    assert told == kinds_of_sources()


def kinds_of_sources() -> set[str]:
    template = (ROOT / "config" / "domains" / "_template.yaml").read_text()
    return {source["kind"] for source in YAML(typ="safe").load(template)["data_sources"]}


def test_every_verdict_is_explained_and_no_other():
    assert {row[0] for row in rows("cycle.md", "verdict")} == {str(each) for each in Decision}


def test_what_the_looks_may_spend_is_what_they_spend():
    from jupiterd.cycle.gate.alpha_spending import spent_alpha

    told = re.search(
        r"may spend (\S+) %, the\s+second (\S+) %, the third (\S+) %", prose(DOCS / "gate.md")
    )
    assert told is not None
    assert [float(word) for word in told.groups()] == [
        round(100 * spent_alpha(0.05, look), 0 if look == 1 else 1) for look in (1, 2, 3)
    ]


def test_the_first_screen_has_measured_figures_and_says_what_is_not_measured():
    told = rows("../README.md", "hardware")
    measured = prose(DOCS / "benchmarks.md") + prose(DOCS / "gate.md")
    measured += "".join(block.text for block in blocks(DOCS / "gate.md"))
    for _, _, time, bits in told:
        figures = re.findall(r"\d\.\d{4}", bits)
        assert figures or (time, bits) == ("not measured yet", "not measured yet")
        assert [figure for figure in figures if figure not in measured] == []
    assert sum("not measured" in row[3] for row in told) < len(told)


@pytest.mark.parametrize(("readme", "point"), [("README.md", "."), ("README.es.md", ",")])
def test_the_readmes_figures_stand_in_the_benchmarks(readme, point):
    [line] = [part for part in prose(ROOT / readme).split("\n- ") if "(docs/benchmarks.md)" in part]
    figures = re.findall(rf"\d+{re.escape(point)}\d+ s\b", line)
    assert len(figures) == 5
    measured = prose(DOCS / "benchmarks.md")
    assert [figure for figure in figures if figure.replace(",", ".") not in measured] == []
