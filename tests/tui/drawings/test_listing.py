"""Lists of which one row can be chosen."""

import pytest

from jupiter_tui.drawings.primitives.lines import line
from jupiter_tui.drawings.primitives.listing import (
    Choice,
    Listing,
    Row,
    drawn,
    filtered,
    selected_place,
)

ROWS = tuple(Row(name, line(f"{name} is a Trainer")) for name in ("ada", "bob", "cyd"))


def _lines(listing, place):
    return ["".join(cell.text for cell in made) for made in drawn(listing, place)]


def test_the_chosen_row_is_marked_and_all_lines_stand_below_each_other():
    listing = Listing((line("NAME"),), ROWS, (line("two more"),))
    assert _lines(listing, 1) == [
        "  NAME", "  ada is a Trainer", "> bob is a Trainer", "  cyd is a Trainer", "  two more",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "left"),
    [("", ["ada", "bob", "cyd"]), ("BOB", ["bob"]), ("trainer c", ["cyd"]), ("gone", [])],
)
def test_a_filter_keeps_the_rows_in_which_every_word_occurs(words, left):
    listing = filtered(Listing((line("NAME"),), ROWS), words)
    assert ([row.key for row in listing.rows], len(listing.head)) == (left, 1)


def test_the_choice_follows_its_row_wherever_that_goes():
    turned = tuple(reversed(ROWS))
    assert selected_place(turned, Choice(selected="ada"), last_place=0) == 2


def test_a_row_that_goes_leaves_the_choice_at_its_place():
    assert selected_place(ROWS[:2], Choice(selected="cyd"), last_place=2) == 1
    assert selected_place((), Choice(selected="cyd"), last_place=2) is None
