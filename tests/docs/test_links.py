from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors, links, pages

ELSEWHERE = ("http://", "https://", "mailto:")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page):
    dead = [target for target in links(page) if why_dead(page, target)]
    assert dead == []


def why_dead(page: Path, target: str) -> str:
    """Say what is wrong with a link of a page; empty where nothing is."""
    if target.startswith(ELSEWHERE):
        return ""
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists() or ROOT not in (there, *there.parents):
        return "no such file"
    if anchor and anchor not in anchors(there):
        return f"no heading {anchor}"
    return ""


def test_a_dead_link_would_be_found():
    page = ROOT / "README.md"
    assert why_dead(page, "docs/nowhere.md")
    assert why_dead(page, "docs/quickstart.md#no-such-heading")
    assert not why_dead(page, "docs/quickstart.md#one-machine")


def test_the_index_names_every_page_of_the_documentation():
    index = ROOT / "docs" / "README.md"
    named = {(index.parent / target.partition("#")[0]).resolve() for target in links(index)}
    below = {page for page in pages() if index.parent in page.parents and "es" not in page.parts}
    assert below - {index} <= named
