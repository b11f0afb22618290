"""The form of people's own questions, and what is said of a line that has another."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.questions.question_file import (
    MAX_CHARS,
    MAX_CHOICES,
    MAX_QUESTIONS,
    DomainQuestion,
    read_questions,
)
from jupiterd.errors import UsageError

NAME = "bread.jsonl"


def lines(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_each_form_is_read():
    text = lines(
        {"question": "Who?", "answer": "Ada"},
        {"question": "Who else?", "answer": ["Bob", "Robert"], "topic": "people"},
        {"question": "Which?", "choices": ["rye", "oat"], "answer": 1},
        {"question": "Which one?", "choices": ["rye", "oat"], "answer": "rye"},
    )
    read = read_questions(f"\n{text}  \n", NAME)
    assert read == [
        DomainQuestion("Who?", ("Ada",)),
        DomainQuestion("Who else?", ("Bob", "Robert"), topic="people"),
        DomainQuestion("Which?", ("oat",), ("rye", "oat")),
        DomainQuestion("Which one?", ("rye",), ("rye", "oat")),
    ]
    assert [each.right_choice for each in read[2:]] == [1, 0]


@pytest.mark.parametrize(
    ("row", "mistake"),
    [
        ([], "it is no JSON object"),
        ({"question": "a"}, "its answer is missing, empty or no text"),
        ({"question": " ", "answer": "b"}, "its question is missing, empty or no text"),
        ({"question": "a", "answer": []}, "its answer is empty"),
        ({"question": "a", "answer": ["b", 3]}, "its answer is missing, empty or no text"),
        ({"question": "a", "answer": "b", "hint": "c"}, "nobody knows its field hint"),
        ({"question": "a", "answer": "b", "topic": 3}, "its topic is no text"),
        ({"question": "a" * (MAX_CHARS + 1), "answer": "b"}, "more than 20,000 characters"),
        ({"question": "a\ud83d", "answer": "b"}, "its question has half of a character"),
        ({"question": "a", "choices": ["b"], "answer": 0}, "it has 1 choices"),
        ({"question": "a", "choices": ["b", "b"], "answer": 0}, "two of its choices are the same"),
        ({"question": "a", "choices": ["b", "c"], "answer": 2}, "none of its choices"),
        ({"question": "a", "choices": ["b", "c"], "answer": -1}, "none of its choices"),
        ({"question": "a", "choices": ["b", "c"], "answer": True}, "none of its choices"),
        ({"question": "a", "choices": ["b", "c"]}, "none of its choices"),
        (
            {"question": "a", "choices": [str(n) for n in range(MAX_CHOICES + 1)], "answer": 0},
            f"it has {MAX_CHOICES + 1} choices",
        ),
    ],
)
def test_a_line_of_another_form_is_told_with_its_number(row: object, mistake: str):
    with pytest.raises(UsageError, match=r"line 3 of bread\.jsonl: ") as caught:
        read_questions(lines({"question": "Who?", "answer": "Ada"}) + "\n" + lines(row), NAME)
    assert mistake in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("line", ["{", "[" * 100_000, "nonsense"])
def test_what_is_no_json_is_told(line: str):
    with pytest.raises(UsageError, match=r"line 1 of bread\.jsonl: it is no JSON$"):
        read_questions(line, NAME)


def test_a_file_without_questions_with_too_many_or_with_two_alike_is_refused():
    row = {"question": "Who?", "answer": "Ada"}
    with pytest.raises(UsageError, match="has no question"):
        read_questions(" \n", NAME)
    with pytest.raises(UsageError, match=r"lines 1 and 3 of bread\.jsonl are the same"):
        read_questions(lines(row, row | {"question": "What?"}, row), NAME)
    many = lines(*({"question": f"q{n}", "answer": "a"} for n in range(MAX_QUESTIONS + 1)))
    with pytest.raises(UsageError, match="more than 10,000 questions"):
        read_questions(many, NAME)


@given(st.text())
def test_any_text_is_read_or_refused(text: str):
    with suppress(UsageError):
        assert read_questions(text, NAME)
