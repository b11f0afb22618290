"""Nothing that a model writes steers the terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.screen.shown_text import ShownText, shown_text


@pytest.mark.parametrize(
    "attack",
    [
        "\x1b[2J\x1b[H",
        "\x1b]0;title\x07",
        "\x1b]52;c;cm0gLXJmIC8=\x07",
        "\x9b2J",
        "\x1bP+q\x1b\\",
        "over\rwritten",
        "back\x08\x08",
        "\u202eright to left",
        "\x00\x7f",
    ],
)
def test_sequences_for_terminals_are_shown_harmless(attack):
    shown = shown_text(attack)
    assert len(shown) == len(attack)
    assert all(char.isprintable() for char in shown)


@given(st.text())
def test_only_lines_tabs_and_joiners_are_no_printable_characters(text):
    kept = {char for char in shown_text(text) if not char.isprintable()}
    assert kept <= {"\n", "\t", "\u200c", "\u200d"}
    assert not any(unicodedata.category(char) == "Cc" for char in kept - {"\n", "\t"})


@given(st.lists(st.text(alphabet="ab\r\n\x1b")))
def test_pieces_are_shown_as_the_whole_is(pieces):
    stream = ShownText()
    shown = "".join(map(stream.feed, pieces))
    assert shown + stream.feed(".") == shown_text("".join(pieces) + ".")


def test_ordinary_text_stays_as_it_is():
    text = "def f():\n\treturn '\u00e9\u4f60\u597d'  # \U0001f468\u200d\U0001f469\n"
    assert shown_text(text) == text
    assert shown_text("a\r\nb") == "a\nb"
    assert shown_text("a\u00a0b") == "a b"
