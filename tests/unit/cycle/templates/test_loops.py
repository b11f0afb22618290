"""Where an answer begins to say again what it said."""

import pytest

from jupiterd.cycle.templates.loops import before_loop, loop_start

PAIR = "Question: How does the cache work?\nAnswer: It holds what was read last for a minute."


@pytest.mark.parametrize(
    "text",
    [
        "It is fast. It is fast. It is very fast indeed by now.",
        "The cache holds what was read. The cache drops what was read.",
        "```\nfor each of the many rows:\nfor each of the many rows:\n```\nThat is a loop.",
        "",
    ],
)
def test_what_says_something_new_stays(text: str):
    assert loop_start(text) is None
    assert before_loop(text) == text


def test_it_ends_in_front_of_the_first_sentence_that_comes_again():
    text = "The cache holds pages for a minute. Then it drops them all at once."
    assert before_loop(f"{text} The cache holds pages for a minute. Then") == text
    assert before_loop(f"{text}\n\n- the cache holds pages for a minute\n- then") == text


def test_a_part_that_was_only_begun_goes_with_it():
    looped = f"{PAIR}\n\nQuestion: How does the cache work?\nAnswer: By"
    assert before_loop(looped) == PAIR
    answered_alike = f"{PAIR}\n\n**Answer:** It holds what was read last for a minute."
    assert before_loop(answered_alike) == PAIR
    headed = f"{PAIR}\n\n### The cache\n\nIt holds what was read last for a minute."
    assert before_loop(headed.replace("Answer: ", "")) == PAIR.replace("Answer: ", "")


def test_a_label_in_front_makes_no_other_sentence_of_it():
    assert before_loop(f"{PAIR} It holds what was read last for a minute.") == PAIR
    bold = PAIR.replace("Answer:", "**Answer 1:**")
    assert before_loop(f"{bold} It holds what was read last for a minute.") == bold
