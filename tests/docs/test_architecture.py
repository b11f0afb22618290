"""Pages about the code name what is there, and stay short enough to be read.

They are ARCHITECTURE.md, the design notes, CONTRIBUTING.md and the tree in README.md.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupiterd.cluster.facts import attempt_facts, dismissal_fact, facts, outer_step_facts
from tests.docs.pages import ROOT, blocks, inline_code, prose

PAGE = ROOT / "ARCHITECTURE.md"
NOTES = sorted((ROOT / "docs" / "design").glob("*.md"))
MOST_WORDS = 800
MOST_WORDS_OF_A_NOTE = 900

_PATH = re.compile(r"[a-z_][a-z_0-9.]*(?:/[a-z_0-9.]*)+")
_MODULE = re.compile(r"[a-z_]+(?:\.[a-z_0-9]+)+")
_FACT = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")

NO_FACTS = {"RunWork", "DiLoCo", "MinHash"}
"""A call between nodes, and methods that others have named."""
NO_PATHS = {"jupiter/v1", "r2/filter/0", "runs/", "training_state/"}

GUIDE = ROOT / "CONTRIBUTING.md"

each_page = pytest.mark.parametrize(
    "page", [PAGE, GUIDE, *NOTES], ids=lambda page: str(page.relative_to(ROOT))
)


def words(text: str) -> int:
    """Return how many words a page has; arrows and marks of lists are none."""
    return sum(any(letter.isalpha() for letter in word) for word in text.split())


def section(page: Path, heading: str) -> str:
    """Return what stands below one heading of a page, up to the next."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


def is_there(named: str) -> bool:
    """Say whether a path, of the repository or below jupiterd/, is a module or a folder."""
    places = [base / named for base in (ROOT, ROOT / "jupiterd")]
    return any(place.exists() or place.with_name(f"{place.name}.py").exists() for place in places)


def test_the_page_is_short_enough_to_be_read():
    assert 400 < words(PAGE.read_text(encoding="utf-8")) <= MOST_WORDS


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_every_design_note_is_short_enough_to_be_read(note):
    assert words(note.read_text(encoding="utf-8")) <= MOST_WORDS_OF_A_NOTE


def test_words_are_counted():
    assert words("a word → and\n- another 12 |") == 4
    assert not is_there("daemon/nowhere")


@each_page
def test_every_module_and_folder_that_is_named_is_there(page):
    named = {code for code in inline_code(page) if _PATH.fullmatch(code)} - NO_PATHS
    assert sorted(each for each in named if not is_there(each)) == []


@each_page
def test_every_fact_that_is_named_can_be_recorded(page):
    told = set(_FACT.findall(prose(page)))
    known = {
        name
        for module in (facts, attempt_facts, outer_step_facts, dismissal_fact)
        for name in vars(module)
    }
    assert told - known - NO_FACTS == set()


def ways() -> Iterator[tuple[str, list[str]]]:
    """Yield each way through the code, with its numbered lines."""
    for part in re.split(r"\n\n(?=[^\n]+:\n)", section(PAGE, "Ways through")):
        title, *lines = part.strip().splitlines()
        yield title, [line for line in lines if re.match(r"\d+\. ", line)]


def test_four_ways_have_five_lines_each_that_begin_with_a_module():
    told = dict(ways())
    assert len(told) == 4
    assert {len(lines) for lines in told.values()} == {5}
    for line in (line for lines in told.values() for line in lines):
        assert re.match(r"\d\. `[a-z_]+(\.[a-z_0-9]+)+` ", line), line


def test_every_module_in_the_ways_is_there():
    named = re.findall(r"`([^`]+)`", section(PAGE, "Ways through"))
    modules = [name for name in named if _MODULE.fullmatch(name)]
    assert len(modules) >= 20
    files = [(ROOT / "jupiterd" / name.replace(".", "/")).with_suffix(".py") for name in modules]
    assert [str(file) for file in files if not file.is_file()] == []


def packages(folder: Path) -> set[str]:
    """Return the packages right below a folder."""
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def layers(part: str) -> list[str]:
    """Return the packages of a part as its contract has them, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [found] = [
        contract["layers"]
        for contract in contracts["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == [f"jupiterd.{part}"]
    ]
    names = [layer.strip("()") for layer in reversed(found)]
    there = packages(ROOT / "jupiterd" / part)
    return [name for name in names if name in there]


@pytest.mark.parametrize("part", ["cluster", "cycle"])
def test_the_map_names_the_packages_of_each_pure_part_from_the_lowest_on(part):
    top, _ = blocks(PAGE)[1:3]
    [row] = re.findall(rf"^{part} +pure: ((?:.+\n)(?: +.+\n)*)", top.text, re.MULTILINE)
    assert row.split() == layers(part)
    assert set(layers(part)) == packages(ROOT / "jupiterd" / part)


def test_the_map_names_the_packages_of_the_daemon_from_the_lowest_on():
    _, daemon = blocks(PAGE)[1:3]
    named = [line.split()[0] for line in daemon.text.splitlines()]
    assert named == layers("daemon")
    assert set(named) == packages(ROOT / "jupiterd" / "daemon")


def test_the_map_names_the_packages_at_the_top():
    top, _ = blocks(PAGE)[1:3]
    named = {line.split()[0] for line in top.text.splitlines() if not line.startswith(" ")}
    assert packages(ROOT / "jupiterd") - named == set()


@pytest.mark.parametrize("readme", ["README.md", "README.es.md"])
def test_the_tree_of_the_readme_names_what_is_there(readme):
    [tree] = [block for block in blocks(ROOT / readme) if block.text.startswith("jupiterd/")]
    folders: list[str] = []
    for line in tree.text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        folders = [*folders[:depth], line.split()[0]]
        assert (ROOT / "".join(folders)).is_dir(), line
    assert len(tree.text.splitlines()) > 8
