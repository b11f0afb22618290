"""Texts of several lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.typed_text import TypedText


def typed(*lines: str) -> str | None:
    text = TypedText()
    *before, last = lines
    for line in before:
        assert text.take(line) is None
        assert text.is_open
    return text.take(last)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["hello"], "hello"),
        ([""], ""),
        (["one\\", "two"], "one\ntwo"),
        (['"""one', "", 'two"""'], "one\n\ntwo"),
        (['"""', "one", '"""'], "one"),
        (['"""one line"""'], "one line"),
        (['"""', "a\\", '"""'], "a\\"),
        (['say """ here'], 'say """ here'),
    ],
)
def test_lines_become_a_text(lines, text):
    assert typed(*lines) == text


def test_one_text_follows_another():
    text = TypedText()
    assert text.take('"""a') is None
    assert text.take('b"""') == "a\nb"
    assert not text.is_open
    assert text.take("c") == "c"


@given(st.lists(st.text(alphabet='ab"\\ ', max_size=6), min_size=1, max_size=5))
def test_every_line_is_taken_once(lines):
    text, whole = TypedText(), list[str]()
    for line in lines:
        if (found := text.take(line)) is not None:
            whole.append(found)
    assert "".join(whole).count("a") <= "".join(lines).count("a")
    assert text.is_open or "".join(whole).count("a") == "".join(lines).count("a")
