import pytest

from jupiterd.cycle.decontamination import Holdout


def words(count, start=0):
    return " ".join(f"word{number}" for number in range(start, start + count))


HELD_OUT = words(100)


@pytest.mark.parametrize(("taken", "leaks"), [(50, True), (49, False)])
def test_half_of_a_text_from_the_holdout_is_too_much(taken, leaks):
    """The held-out text is long, so that its own half is far away."""
    holdout = Holdout([words(1000)])
    assert holdout.contaminates(f"{words(taken, 300)} {words(100 - taken, 5000)}") is leaks


@pytest.mark.parametrize(("taken", "leaks"), [(56, True), (55, False)])
def test_half_of_a_held_out_text_is_too_much_in_whatever_long_text(taken, leaks):
    """100 words have 88 runs of 13, and 56 words have 44."""
    text = f"{words(900, 5000)} {words(taken)} {words(900, 7000)}"
    assert Holdout([words(50, 9000), HELD_OUT]).contaminates(text) is leaks


def test_thirteen_words_in_a_row_are_needed():
    holdout = Holdout([words(13)])
    assert holdout.contaminates(words(13))
    assert not holdout.contaminates(words(12))
    scattered = " ".join(f"{words(12, 12 * number)} other" for number in range(8))
    assert not Holdout([HELD_OUT]).contaminates(scattered)


def test_case_and_marks_play_no_part():
    assert Holdout([HELD_OUT]).contaminates(HELD_OUT.upper().replace(" ", ", "))


def test_runs_that_several_held_out_texts_share_count_for_one_of_them():
    notice = words(40, 100)
    holdout = Holdout([f"{notice} {words(100, 1000)}", f"{notice} {words(100, 2000)}"])
    assert not holdout.contaminates(f"{notice} {words(100, 3000)}")


@pytest.mark.parametrize("texts", [[], [""], ["short"]])
def test_nothing_shares_anything_with_an_empty_holdout(texts):
    assert not Holdout(texts).contaminates(HELD_OUT)
    assert not Holdout(texts).contaminates("")
