"""Two answers in columns, while they grow."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.screen.columns import SideBySide, WrappedText, cut, width_of

TEXTS = st.text(alphabet="ab \n\u4f60\u597d\u00e9\u0301\U0001f600\t-", max_size=120)


def wrapped(pieces: list[str], width: int) -> list[str]:
    text = WrappedText(width)
    for piece in pieces:
        text.feed(piece)
    return text.all_rows


def test_words_move_to_the_next_row_and_indentation_stays():
    assert wrapped(["one two three"], 8) == ["one two", "three"]
    assert wrapped(["    x = call(12)"], 10) == ["    x =", "call(12)"]
    assert wrapped(["one\n\ntwo\n"], 8) == ["one", "", "two"]
    assert wrapped(["abcdefghij"], 4) == ["abcd", "efgh", "ij"]
    assert wrapped(["abcd efgh"], 4) == ["abcd", "efgh"]


def test_wide_characters_take_two_columns():
    assert wrapped(["\u4f60\u597d\u4f60\u597d"], 5) == ["\u4f60\u597d", "\u4f60\u597d"]
    assert width_of("\u4f60e\u0301") == 3
    assert cut("\u4f60\u597d", 3) == "\u4f60"


@given(TEXTS, st.integers(2, 12), st.sets(st.integers(0, 120)))
def test_rows_fit_and_nothing_is_lost_whatever_the_pieces(text, width, cuts):
    bounds = [0, *sorted(cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    rows = wrapped(pieces, width)
    assert rows == wrapped([text], width)
    assert all(width_of(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


@given(TEXTS, st.integers(2, 12))
def test_a_row_that_is_final_never_changes(text, width):
    growing, before = WrappedText(width), list[str]()
    for character in text:
        growing.feed(character)
        assert growing.rows[: len(before)] == before
        before = list(growing.rows)


def test_rows_are_printed_once_both_sides_have_them():
    both = SideBySide(64)
    assert both.width == 30
    both.feed(0, "left one\nleft two\nleft three")
    assert both.finished() == []
    assert both.unfinished(2) == [
        f"{'left one':<30} \u2502", f"{'left two':<30} \u2502"
    ]  # fmt: skip
    both.feed(1, "right one\nri")
    assert both.finished() == [f"{'left one':<30} \u2502 right one"]
    both.end(1)
    assert both.finished() == [f"{'left two':<30} \u2502 ri"]
    both.end(0)
    assert both.finished() == [f"{'left three':<30} \u2502"]
    assert (both.finished(), both.unfinished(9)) == ([], [])


@given(st.lists(st.tuples(st.integers(0, 1), TEXTS), max_size=12))
def test_all_rows_come_once_and_in_order(feeds):
    both, whole, printed = SideBySide(60), SideBySide(60), list[str]()
    for side, text in feeds:
        both.feed(side, text)
        whole.feed(side, text)
        printed += both.finished()
    for each in (both, whole):
        each.end(0)
        each.end(1)
    assert [*printed, *both.finished()] == whole.finished()


def test_narrow_terminals_have_no_room_for_two():
    assert SideBySide.fits(80)
    assert not SideBySide.fits(50)
    assert SideBySide(60).heading(["a" * 90, "base"]) == f"{'a' * 28} \u2502 base"
