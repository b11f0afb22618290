"""Answers on a terminal, and elsewhere."""

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.screen.answer_screen import (
    InColumns,
    OneBelowTheOther,
    TextOutput,
    answer_screen,
)
from tests.support.ctl.chat_terminal import LineScreen

COLUMNS, LINES = 20, 200
TEXTS = st.text(alphabet="abc  \n\u4f60\t-", max_size=150)


def shown(pieces: list[str], *, is_terminal: bool = True) -> str:
    """Return what stands on a terminal, or in a file, after one answer."""
    out = io.StringIO()
    screen = OneBelowTheOther(TextOutput(out, COLUMNS, LINES, is_terminal=is_terminal), ["one"])
    for piece in pieces:
        screen.text(0, piece)
    screen.end(0)
    screen.close()
    return on_screen(out.getvalue()) if is_terminal else out.getvalue()


def on_screen(written: str) -> str:
    screen = LineScreen(COLUMNS, LINES)
    screen.feed(written.replace("\n", "\r\n").encode())
    return "\n".join(row.rstrip() for row in screen.text.splitlines()).rstrip()


def test_words_move_whole_to_the_next_row_of_a_terminal():
    pieces = ["gradient ", "des", "cent mini", "mizes a fun", "ction\n", "by steps"]
    assert shown(pieces) == "gradient descent\nminimizes a\nfunction\nby steps"
    assert shown(pieces, is_terminal=False) == "".join(pieces) + "\n"


@given(TEXTS, st.sets(st.integers(0, 150)))
def test_the_rows_are_the_same_whatever_the_pieces(text, cuts):
    bounds = [0, *sorted(cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    whole = shown([text])
    assert shown(pieces) == whole
    assert "".join(whole.split()) == "".join(text.split())


@given(st.lists(st.tuples(st.integers(0, 1), TEXTS), max_size=8))
def test_columns_that_grow_end_as_if_all_had_come_at_once(feeds):
    def drawn(steps: list[tuple[int, str]], rows: int) -> str:
        out = io.StringIO()
        columns = InColumns(TextOutput(out, COLUMNS, rows, is_terminal=True), ["a", "b"])
        for side, text in steps:
            columns.text(side, text)
        columns.close()
        return on_screen(out.getvalue())

    texts = ["".join(text for each, text in feeds if each == side) for side in (0, 1)]
    assert drawn(feeds, 6) == drawn([*enumerate(texts)], LINES)


def test_the_second_answer_waits_for_the_end_of_the_first():
    out = io.StringIO()
    screen = answer_screen(TextOutput(out), ["one", "two\x1b[2J"])
    screen.text(1, "second")
    screen.text(0, "first")
    assert out.getvalue() == "one:\nfirst"
    screen.end(0)
    screen.text(1, " answer")
    screen.close()
    assert out.getvalue() == "one:\nfirst\n\ntwo?[2J:\nsecond answer\n"


@pytest.mark.parametrize(
    ("columns", "is_terminal", "kind"),
    [(80, True, InColumns), (80, False, OneBelowTheOther), (50, True, OneBelowTheOther)],
)
def test_columns_need_a_wide_terminal(columns, is_terminal, kind):
    output = TextOutput(io.StringIO(), columns, is_terminal=is_terminal)
    assert type(answer_screen(output, ["one", "two"])) is kind
    assert type(answer_screen(output, ["one"])) is OneBelowTheOther


def test_a_line_end_that_comes_in_two_pieces_is_one():
    assert (
        shown(["one\r", "\ntwo"]) == shown(["one\r", "\ntwo"], is_terminal=False)[:-1] == "one\ntwo"
    )
