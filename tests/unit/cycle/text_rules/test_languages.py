"""Languages that a domain may name, and what was meant where it names none."""

import pytest

from jupiterd.cycle.text_rules.languages import NATURAL, PROGRAMMING, language_mistake


@pytest.mark.parametrize("language", ["en", "es", "ja", "code:python", "code:c++", "code:rust"])
def test_a_language_that_there_is_has_no_mistake(language):
    assert language_mistake(language) == ""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("english", "en"),
        ("spanish", "es"),
        ("español", "es"),
        ("englsh", "en"),
        ("en-us", "en"),
        ("python", "code:python"),
        ("code:pyton", "code:python"),
        ("code:cpp", "code:c++"),
        ("code:js", "code:javascript"),
        ("code:spanish", "es"),
    ],
)
def test_the_nearest_right_one_is_told(written, meant):
    told = language_mistake(written)
    assert told == f"expected a language that can be told, such as {meant}, got {written}"
    assert language_mistake(meant) == ""


@pytest.mark.parametrize("written", ["klingon", "xx", "code:brainteaser"])
def test_what_resembles_none_is_refused_with_an_example(written):
    told = language_mistake(written)
    assert told.endswith(f"got {written}")
    assert "such as" in told


def test_no_name_is_of_both_lists_but_those_with_their_mark():
    assert all(language_mistake(each) == "" for each in NATURAL)
    assert all(language_mistake(f"code:{each}") == "" for each in PROGRAMMING)
