import random

import pytest

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.repetition import (
    MAX_REPEATED_N_GRAM_CHARS,
    repeated_blocks,
    repeated_n_gram_chars,
    repeated_phrases,
    repeats,
    top_n_gram,
)


def words(count, start=0):
    """Return different words of eight characters."""
    return [f"w{number:07}" for number in range(start, start + count)]


def first_reason(misses):
    return next((miss.reason for miss in misses), None)


def judged(found):
    return first_reason(repeated_phrases(found, len(" ".join(found))))


@pytest.mark.parametrize(("again", "reason"), [(3, None), (4, DropReason.REPEATED_LINES)])
def test_three_lines_of_ten_may_repeat_one(again, reason):
    # The repeated one is short, so that the share of characters stays small.
    lines = [f"a line number {number} that is long enough" for number in range(10 - again - 1)]
    assert first_reason(repeated_blocks("\n".join([*lines, *["ab"] * (again + 1)]))) is reason


@pytest.mark.parametrize(("size", "reason"), [(18, None), (30, DropReason.REPEATED_LINES)])
def test_repeated_lines_may_hold_a_fifth_of_the_characters(size, reason):
    lines = [f"{number}" * 10 for number in range(1, 9)]
    assert first_reason(repeated_blocks("\n".join([*lines, "x" * size, "x" * size]))) is reason


@pytest.mark.parametrize(("again", "reason"), [(1, None), (4, DropReason.REPEATED_PARAGRAPHS)])
def test_paragraphs_are_looked_at_too(again, reason):
    paragraphs = [f"A paragraph, number {number}, of some length." for number in range(6)]
    text = "\n\n".join([*paragraphs, *["Again."] * (again + 1)])
    assert first_reason(repeated_blocks(text)) is reason


def test_repeats_are_those_that_stood_there_before():
    assert repeats(["a", "b", "a", "a"]) == (0.5, 2)
    assert repeats(["a", "b"]) == (0.0, 0)


def test_the_commonest_run_is_found_with_its_spaces():
    assert top_n_gram(["of", "the", "x", "of", "the", "y", "of", "the"], 2) == (18, 3)
    assert top_n_gram(["one"], 2) == (0, 0)


@pytest.mark.parametrize(
    ("n", "limit"), [(2, 0.20), (3, 0.18), (4, 0.16)], ids=["two", "three", "four"]
)
def test_one_run_of_words_may_make_up_so_much(n, limit):
    run = words(n, start=9000)
    for times, is_dropped in ((2, False), (16, True)):
        text = words(100)
        for place in range(times):
            text[place * 5 : place * 5] = run
        share = times * len(" ".join(run)) / len(" ".join(text))
        assert (share > limit) is is_dropped, "the example is on the wrong side"
        reason = DropReason.FREQUENT_PHRASE if is_dropped else None
        assert judged(text) is reason


@pytest.mark.parametrize("n", sorted(MAX_REPEATED_N_GRAM_CHARS))
def test_runs_that_come_again_may_make_up_so_much(n):
    """Different runs of n words come twice, so no single one is frequent."""
    limit = MAX_REPEATED_N_GRAM_CHARS[n]
    for share, is_dropped in ((0.6 * limit, False), (1.5 * limit, True)):
        runs = [words(n, start=1000 * number) for number in range(1, 40)]
        count = 1000
        taken = runs[: max(1, int(share * count / n))]
        # Something stands between, so that nothing longer than n words comes again.
        again = [word for number, run in enumerate(taken) for word in (*run, f"between{number}")]
        first = [word for number, run in enumerate(taken) for word in (*run, f"after{number}")]
        text = [*first, *words(count - len(first) - len(again), start=90_000), *again]
        found = repeated_n_gram_chars(text, n) / len(" ".join(text))
        assert (found > limit) is is_dropped, "the example is on the wrong side"
        assert judged(text) is (DropReason.REPEATED_PHRASES if is_dropped else None)


def test_no_character_is_counted_twice():
    assert repeated_n_gram_chars(["ab"] * 20, 5) == 2 * 15  # the first five, then three times five


def test_the_short_cut_never_changes_a_verdict(seed):
    chance = random.Random(seed)
    for _ in range(300):
        vocabulary = words(chance.choice((3, 20, 300)))
        text = [chance.choice(vocabulary) for _ in range(chance.randint(0, 200))]
        if chance.random() < 0.5 and text:
            start = chance.randrange(len(text))
            text += text[start : start + chance.randint(3, 40)]
        chars = len(" ".join(text))
        is_repetitive = any(
            repeated_n_gram_chars(text, n) > limit * chars
            for n, limit in MAX_REPEATED_N_GRAM_CHARS.items()
        )
        is_frequent = any(
            top_n_gram(text, n)[0] > limit * chars for n, limit in ((2, 0.2), (3, 0.18), (4, 0.16))
        )
        expected = (
            DropReason.FREQUENT_PHRASE
            if is_frequent
            else DropReason.REPEATED_PHRASES
            if is_repetitive
            else None
        )
        assert judged(text) is expected
