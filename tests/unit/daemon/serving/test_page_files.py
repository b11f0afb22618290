"""The files of the page keep to the rules that make it safe; a browser isn't needed to see that."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "jupiterd" / "daemon" / "serving" / "page"
FILES = sorted(PAGE.iterdir())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
MARKUP = (PAGE / "index.html").read_text()
STYLE = (PAGE / "style.css").read_text()
MOST_BYTES = 100_000

MAKES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|"
    r"DOMParser|setHTML|srcdoc|\beval\b|new Function|javascript:"
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_or_code_of_a_text(script: Path) -> None:
    assert MAKES_MARKUP.search(script.read_text()) is None


def test_such_a_script_would_be_found() -> None:
    assert MAKES_MARKUP.search("element.innerHTML = answer")


def test_the_page_has_no_script_style_or_handler_in_its_markup() -> None:
    assert re.search(r"<style|\sstyle=|\son\w+=", MARKUP) is None
    assert re.findall(r"<script[^>]*>(.*?)</script>", MARKUP) == ["", ""]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_another_place(path: Path) -> None:
    named = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text())
    assert [each for each in named if each != "http://www.w3.org"] == []


def test_every_file_is_used_and_there() -> None:
    text = "".join(path.read_text() for path in FILES)
    used = set(re.findall(r"(?:href|src)=\"([\w.-]+)\"|from \"\./([\w.-]+)\"", text))
    assert {"".join(each) for each in used} == {path.name for path in FILES} - {"index.html"}


def test_the_page_is_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES


def test_dark_is_the_same_whether_chosen_or_the_systems() -> None:
    by_system = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', STYLE, re.DOTALL)
    chosen = re.search(r':root\[data-theme="dark"\] \{(.*?)\}', STYLE, re.DOTALL)
    assert by_system is not None
    assert chosen is not None
    assert by_system[1].split() == chosen[1].split()


def test_every_colour_has_a_dark_form() -> None:
    light, dark = (set(re.findall(r"(--[\w-]+):", part)) for part in _colours())
    assert light - dark == {"--mono", "--sans"}
    assert dark <= light


def _colours() -> tuple[str, str]:
    first, _, rest = STYLE.partition("@media")
    return first, rest.partition("}")[0]


def test_words_can_be_told_from_their_ground() -> None:
    """WCAG asks for a contrast of 4.5."""
    for part in _colours():
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part))
        pairs = [(ink, ground) for ink in ("ink", "muted") for ground in GROUNDS]
        pairs += [("on-accent", "accent"), ("good", "good-soft"), ("bad", "bad-soft")]
        poor = {pair: contrast(*(colours[name] for name in pair)) for pair in pairs}
        assert {pair: value for pair, value in poor.items() if value < 4.5} == {}


GROUNDS = ("ground", "raised", "sunken", "soft")


def contrast(one: str, other: str) -> float:
    """Return the ratio of two colours' luminance, from 1 to 21. WCAG 2.2, relative luminance."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
