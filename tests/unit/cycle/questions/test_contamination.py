"""Text that gives a domain's own questions away."""

import pytest

from jupiterd.cycle.questions.contamination import NEAR, QuestionIndex
from jupiterd.cycle.questions.question_file import DomainQuestion

OPEN = DomainQuestion("Who wrote the first program for an engine?", ("Ada Lovelace", "Ada"))
CHOICES = DomainQuestion("Which of these breads needs a sour dough?", ("rye",), ("oat", "rye"))
SHORT = DomainQuestion("The capital of France is", ("Paris",))
INDEX = QuestionIndex([OPEN, CHOICES, SHORT])


@pytest.mark.parametrize(
    "text",
    [
        "Q: Who wrote the first program for an engine? A: Ada.",
        "many words before WHO WROTE the first\nprogram for an ENGINE it was ada lovelace indeed",
        "Which of these breads needs a sour dough? (a) oat (b) rye",
        f"Who wrote the first program for an engine? {'word ' * (NEAR - 1)}Ada",
    ],
)
def test_a_question_with_its_answer_is_found_whatever_stands_around_it(text: str) -> None:
    assert INDEX.contaminates(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who wrote the first program for an engine? Bob.",
        "Who wrote the first program for a loom? Ada.",
        "Ada wrote the first program for an engine.",
        "Which of these breads needs a sour dough? (a) oat",
        f"Who wrote the first program for an engine? {'word ' * NEAR}Ada",
        "The capital of France is Paris.",
        "Who wrote the",
        "",
    ],
)
def test_facts_of_the_domain_and_questions_without_answers_stay(text: str) -> None:
    assert not INDEX.contaminates(text)


def test_without_questions_nothing_is_left_out() -> None:
    assert not QuestionIndex([]).contaminates("Who wrote the first program for an engine? Ada")


def test_of_questions_that_begin_alike_each_is_found_with_its_answers() -> None:
    shorter = DomainQuestion("Who wrote the first program for it, then?", ("Bob",))
    index = QuestionIndex([OPEN, shorter, DomainQuestion(OPEN.question, ("Lady Lovelace",))])
    assert index.contaminates(f"{OPEN.question} It was Lady Lovelace.")
    assert index.contaminates(f"{OPEN.question} Ada.")
    assert index.contaminates(f"{shorter.question} Bob.")
    assert not index.contaminates(f"{OPEN.question} Bob.")


def test_marks_alone_are_no_answer() -> None:
    asked = DomainQuestion("Which mark ends each of the sentences of a text?", (".",))
    assert not QuestionIndex([asked]).contaminates(asked.question)
