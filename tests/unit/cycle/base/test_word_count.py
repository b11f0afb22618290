import time

import pytest

from jupiterd.cycle.base.word_count import count_sentences, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A cat, a dog.", ["A", "cat", ",", "a", "dog", "."]),
        ("It's 3.14, or 1,000?", ["It", "'s", "3.14", ",", "or", "1,000", "?"]),
        ("in the U.S. today", ["in", "the", "U.S.", "today"]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("GPL-2 ends...", ["GPL-2", "ends", "..."]),
        ("see https://a.org/b?c=1.", ["see", "https://a.org/b?c=1", "."]),
        ('"Quoted" (yes)', ['"', "Quoted", '"', "(", "yes", ")"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        (" \n\t", []),
    ],
)
def test_words_and_marks_are_cut_as_the_published_thresholds_want_it(text, words):
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("", 0),
        ("No full stop", 1),
        ("One. Two! Three?", 3),
        ("Mr. Smith went to the U.S. in May.", 1),
        ("It costs 3.14 euros... or so.", 1),
        ('He said "yes." Then he left.', 2),
        ("一つ。 二つ。", 2),
    ],
)
def test_sentences_are_counted(line, sentences):
    assert count_sentences(line) == sentences


@pytest.mark.parametrize(
    "piece", ["/", "-", ".", "!", ". ", "a.", "a", "a://", "'s", "\u0301", "_"]
)
def test_no_text_takes_longer_than_its_length(piece):
    began_s = time.process_time()
    text = piece * (200_000 // len(piece))
    split_words(text)
    count_sentences(text)
    assert time.process_time() - began_s < 5.0
