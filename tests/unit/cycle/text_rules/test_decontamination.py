import random

import pytest

from jupiterd.cycle.text_rules.decontamination import MAX_OWNERS, HeldOutIndex


def words(count, start=0):
    return " ".join(f"word{number}" for number in range(start, start + count))


HELD_OUT = words(100)


@pytest.mark.parametrize(("taken", "leaks"), [(50, True), (49, False)])
def test_half_of_a_text_from_the_holdout_is_too_much(taken, leaks):
    """The held-out text is long, so that its own half is far away."""
    holdout = HeldOutIndex([words(1000)])
    assert holdout.contaminates(f"{words(taken, 300)} {words(100 - taken, 5000)}") is leaks


@pytest.mark.parametrize(("taken", "leaks"), [(56, True), (55, False)])
def test_half_of_a_held_out_text_is_too_much_in_whatever_long_text(taken, leaks):
    """100 words have 88 runs of 13, and 56 words have 44."""
    text = f"{words(900, 5000)} {words(taken)} {words(900, 7000)}"
    assert HeldOutIndex([words(50, 9000), HELD_OUT]).contaminates(text) is leaks


def test_thirteen_words_in_a_row_are_needed():
    holdout = HeldOutIndex([words(13)])
    assert holdout.contaminates(words(13))
    assert not holdout.contaminates(words(12))
    scattered = " ".join(f"{words(12, 12 * number)} other" for number in range(8))
    assert not HeldOutIndex([HELD_OUT]).contaminates(scattered)


def test_case_and_marks_play_no_part():
    assert HeldOutIndex([HELD_OUT]).contaminates(HELD_OUT.upper().replace(" ", ", "))


NOTICE = words(40, 100)


def test_what_several_held_out_texts_share_is_a_part_of_each():
    holdout = HeldOutIndex([f"{NOTICE} {words(100, 1000)}", f"{NOTICE} {words(100, 2000)}"])
    assert not holdout.contaminates(f"{NOTICE} {words(100, 3000)}")


@pytest.mark.parametrize("step", [1, -1])
def test_a_page_within_a_longer_held_out_text_is_given_away_in_whatever_order(step):
    held_out = [f"{words(900, 2000)} {HELD_OUT} {words(900, 4000)}", HELD_OUT]
    quoting = f"{words(900, 6000)} {HELD_OUT} {words(900, 8000)}"
    assert HeldOutIndex(held_out[::step]).contaminates(quoting)


@pytest.mark.parametrize(("texts", "leaks"), [(MAX_OWNERS, True), (MAX_OWNERS + 1, False)])
def test_what_stands_in_many_held_out_texts_is_a_notice_and_gives_none_away(texts, leaks):
    held_out = [f"{NOTICE} {words(20, 1000 * number)}" for number in range(1, texts + 1)]
    holdout = HeldOutIndex(held_out)
    assert holdout.contaminates(f"{NOTICE} {words(100, 90_000)}") is leaks
    assert holdout.contaminates(f"{words(100, 90_000)} {held_out[-1]}")
    assert holdout.contaminates(NOTICE)  # it is in the holdout from end to end


@pytest.mark.parametrize(
    ("first", "mark", "last"), [("/*", " * ", " */"), ("", "// ", ""), ("#!/bin/sh", "# ", "")]
)
def test_a_licence_above_code_gives_no_file_away(first, mark, last):
    """As in a project one of whose files, a short one, is held out."""
    lines = [f"{mark}Copyright, under this license: {words(30, 100 * n)}" for n in range(5)]
    notice = "\n".join([first, *lines, last, "", ""])
    holdout = HeldOutIndex([notice + words(30, 5000)])
    assert not holdout.contaminates(notice + words(40, 7000))
    assert holdout.contaminates(notice + words(30, 5000))
    assert holdout.contaminates(words(30, 5000))


def test_a_comment_that_is_no_notice_is_compared():
    said = "\n".join(f"# {words(30, 100 * n)}" for n in range(5))
    assert HeldOutIndex([f"{said}\n{words(30, 5000)}"]).contaminates(f"{said}\n{words(40, 7000)}")


def test_a_page_that_is_held_out_many_times_is_no_notice():
    quoting = f"{words(900, 6000)} {HELD_OUT} {words(900, 8000)}"
    assert HeldOutIndex([HELD_OUT] * 3 * MAX_OWNERS).contaminates(quoting)


def test_no_order_changes_what_is_found(seed):
    chance = random.Random(seed)
    pieces = [words(chance.randrange(15, 60), 100 * number) for number in range(12)]
    held_out = [" ".join(chance.sample(pieces, chance.randrange(1, 6))) for _ in range(60)]
    asked = [" ".join(chance.sample(pieces, 2)) + f" {words(300, 9000)}" for _ in range(40)]
    shuffled = chance.sample(held_out, len(held_out))
    one, other = HeldOutIndex(held_out), HeldOutIndex(shuffled)
    assert [one.contaminates(text) for text in asked] == [
        other.contaminates(text) for text in asked
    ]


@pytest.mark.parametrize("texts", [[], [""], ["short"]])
def test_nothing_shares_anything_with_an_empty_holdout(texts):
    assert not HeldOutIndex(texts).contaminates(HELD_OUT)
    assert not HeldOutIndex(texts).contaminates("")
