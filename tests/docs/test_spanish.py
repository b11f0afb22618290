"""The Spanish pages keep in step with the English ones: what needs no translation is the same."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, headings, inline_code, links, prose

DOCS = ROOT / "docs"
SPANISH = DOCS / "es"

PAIRS = [
    (ROOT / "README.md", ROOT / "README.es.md"),
    *(
        (DOCS / page.relative_to(SPANISH), page)
        for page in sorted(SPANISH.rglob("*.md"))
        if page.name != "README.md"
    ),
]

SHELL = ("sh", "powershell")

each_pair = pytest.mark.parametrize(
    ("english", "spanish"), PAIRS, ids=lambda page: str(page.relative_to(ROOT))
)


def test_the_readme_the_quick_start_and_every_guide_are_there_in_spanish():
    wanted = {ROOT / "README.md", DOCS / "quickstart.md", *(DOCS / "guides").glob("*.md")}
    assert {english for english, _ in PAIRS} == wanted


@each_pair
def test_headings_stand_on_the_same_levels(english, spanish):
    assert [level for level, _ in headings(english)] == [level for level, _ in headings(spanish)]


@each_pair
def test_blocks_of_code_are_the_same_but_for_their_comments(english, spanish):
    assert code(english) == code(spanish)


def code(page: Path) -> list[tuple[str, str]]:
    return [
        (block.language, without_comments(block.text) if block.language in SHELL else block.text)
        for block in blocks(page)
    ]


def without_comments(shell: str) -> str:
    return re.sub(r"\s+#.*$", "", shell, flags=re.MULTILINE)


@each_pair
def test_tables_lists_and_steps_are_as_long(english, spanish):
    assert shape(english) == shape(spanish)


def shape(page: Path) -> Counter[str]:
    """Return how many rows, points and numbered steps a page has."""
    starts = (re.match(r"(\||- |\d+\. |> )", line) for line in prose(page).splitlines())
    found = Counter(start[1] for start in starts if start)
    del found["> "]  # a remark is as long as its language makes it
    return found


@each_pair
def test_links_lead_to_the_same_pages(english, spanish):
    assert Counter(map_links(english)) == Counter(map_links(spanish))


def map_links(page: Path) -> list[str]:
    """Return where links lead, a Spanish page taken for the English one beside it."""
    found: list[str] = []
    for target in links(page):
        if target.startswith("http"):
            found.append(target)
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve()
        if SPANISH in there.parents:
            there = DOCS / there.relative_to(SPANISH)
        names_other_language = there.name in {"README.md", "README.es.md"} and there.parent == ROOT
        found.append("the other language" if names_other_language else f"{there}#{anchor}")
    return found


@each_pair
def test_commands_settings_and_names_in_sentences_are_the_same(english, spanish):
    assert set(inline_code(english)) == set(inline_code(spanish))
