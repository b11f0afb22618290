import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.domain.quality_options import Likeness, WordCounts, lowest_retained

SIDES = st.lists(st.text(max_size=60), max_size=6)


def counted(texts, language="en"):
    counts = WordCounts()
    for text in texts:
        counts.add(text, language)
    return counts


def likeness(reference, rest, language="en"):
    return Likeness(counted(reference, language), counted(rest, language))


@given(SIDES, st.randoms(use_true_random=False))
def test_the_order_of_the_texts_plays_no_part(texts, chance):
    shuffled = chance.sample(texts, len(texts))
    assert counted(texts).counts == counted(shuffled).counts
    assert counted(texts).total == counted(shuffled).total


@given(SIDES, SIDES)
def test_what_is_counted_in_two_parts_is_the_sum_of_both(one, other):
    parts = zip(counted(one).counts, counted(other).counts, strict=True)
    assert list(counted(one + other).counts) == [sum(pair) for pair in parts]
    assert counted(one + other).total == counted(one).total + counted(other).total


@given(st.lists(st.text("abc ", min_size=1), min_size=1), st.text("abcd .", max_size=40))
def test_what_is_likelier_on_one_side_is_as_much_unlikelier_on_the_other(texts, text):
    reference, rest = ["a b", *texts], ["b c c", *texts[1:]]
    assert likeness(reference, rest).score(text, "en") == -likeness(rest, reference).score(
        text, "en"
    )


@given(st.lists(st.text(min_size=1), min_size=1), st.text())
def test_nothing_is_likelier_where_both_sides_are_alike(texts, text):
    assert likeness(["a", *texts], ["a", *texts]).score(text, "en") == 0


def test_a_text_that_reads_like_the_reference_scores_above_one_that_does_not():
    judge = likeness(["the river rises in the hills"] * 999, ["buy cheap pills now"] * 999)
    like, unlike = (judge.score(text, "en") for text in ("The river in hills", "cheap pills"))
    assert like > 0.5 > -0.5 > unlike


def test_words_that_every_text_has_say_nothing_however_small_the_reference_is():
    """Else the commonest word of a large rest, rare beside all buckets, would be a bad sign."""
    chance = random.Random(7)

    def text(name):
        words = ["the", "of", *(f"{name}{chance.randrange(2000)}" for _ in range(8))]
        return " ".join(chance.sample(words, len(words)))

    judge = likeness([text("a") for _ in range(20)], [text("b") for _ in range(20_000)])
    assert abs(judge.score("the", "en")) < 0.1


def test_where_words_stand_without_spaces_letters_are_counted():
    judge = likeness(["河流发源于群山"] * 9, ["立即购买便宜药片"] * 9, "zh")
    assert judge.score("群山河流", "zh") > 0 > judge.score("购买药片", "zh")


@given(st.text())
def test_no_text_is_too_odd_for_a_score(text):
    assert abs(likeness(["a b"], ["c"]).score(text, "en")) < 20


@given(
    st.lists(st.integers(-3, 3), min_size=1).map(lambda found: [each / 2 for each in found]),
    st.floats(0.05, 0.99),
)
def test_such_a_share_is_kept_whatever_is_equal(scores, share):
    ranked = [(score, number) for number, score in enumerate(scores)]
    lowest = lowest_retained(ranked, share)
    kept = [each for each in ranked if each >= lowest]
    assert len(kept) == max(1, round(share * len(scores)))
    assert all(each < lowest for each in ranked if each not in kept)


def test_of_none_nothing_is_too_low():
    assert lowest_retained([], 0.5) < (-1e9, 0)


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_without_words_is_neither_way(text):
    assert likeness(["a"], ["b"]).score(text, "en") == 0
