"""Which answers are right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.questions.grading import chooses_rightly, is_exact, matches, normalised, picked
from jupiterd.cycle.questions.question_file import DomainQuestion


def asked(*answers: str) -> DomainQuestion:
    return DomainQuestion("Who wrote it?", answers)


@pytest.mark.parametrize(
    "written",
    [
        "Ada Lovelace", " ada  lovelace.\n", '"Ada Lovelace!"', "\n\nADA LOVELACE",
        "Ada Lovelace\nQuestion: Who else?\nAnswer: Bob", "\uff21da Lovelace", "Lovelace",
    ],
)  # fmt: skip
def test_case_marks_and_what_follows_do_not_count(written: str):
    assert matches(asked("Ada Lovelace", "Lovelace"), written)


@pytest.mark.parametrize(
    "written",
    [
        "The answer is Ada Lovelace.", "It was **Ada Lovelace**, in 1843.", "`Ada Lovelace`",
        "That is the Ada Lovelace", "\n\nAda Lovelace (1815-1852)",
    ],
)  # fmt: skip
def test_a_whole_sentence_with_the_answer_in_it_is_right_and_not_exact(written: str):
    question = asked("Ada Lovelace")
    assert matches(question, written)
    assert is_exact(question, written) is (written == "`Ada Lovelace`")


def test_paris_is_right_however_it_is_said():
    question = asked("Paris")
    for written in ("Paris.", "paris", "The answer is Paris", "The answer is: Paris!"):
        assert matches(question, written), written
    assert is_exact(question, "Paris.")
    assert not is_exact(question, "The answer is Paris")


@pytest.mark.parametrize("written", ["", "\n", "Ada", "Lovelace, Ada", "Someone\nAda Lovelace"])
def test_less_than_the_answer_or_a_later_line_is_wrong(written: str):
    assert not matches(asked("Ada Lovelace"), written)
    assert not is_exact(asked("Ada Lovelace"), written)


@pytest.mark.parametrize(
    ("answer", "written", "is_right"),
    [
        ("5", "15", False), ("5", "It is 5.", True), ("5", "1.5", False), ("rat", "karat", False),
        ("the", "The", True), ("a cat", "the cat", True), ("巴黎", "答案是巴黎。", True),
        ("巴黎", "答案是伦敦。", False),
    ],
)  # fmt: skip
def test_an_answer_is_found_as_whole_words_where_a_script_has_spaces(
    answer: str, written: str, is_right: bool
):
    assert matches(asked(answer), written) is is_right


@pytest.mark.parametrize(
    ("answer", "written", "is_right"),
    [
        ("-1", "1", False), ("-1", " -1.", True), (".5", ".5", True), (".5", "5", False),
        ("50%", "50", False), ("?", "?", True), ("?", "!", False), ("C++", "C", False),
        ("1,000", "1,000.", True), ("Straße", "STRASSE", True),
    ],
)  # fmt: skip
def test_signs_and_answers_that_are_marks_count(answer: str, written: str, is_right: bool):
    assert matches(asked(answer), written) is is_right


@given(st.text(), st.text(alphabet=" \t.,!?\"'"))
def test_what_stands_around_an_answer_changes_nothing(answer: str, around: str):
    once = normalised(answer)
    assert normalised(once) == once
    if once and once[-1].isalpha():
        assert normalised(f"{answer}{around}") == once


def test_the_likeliest_choice_is_that_which_costs_least_for_each_byte():
    assert picked([4.0, 9.0], ["ab", "abcdef"]) == 1
    assert picked([4.0, 3.0], ["ab", "cd"]) == 1
    assert picked([3.0, 3.0], ["ab", "cd"]) is None
    assert picked([float("inf"), 3.0], ["ab", "cd"]) == 1
    assert picked([2.0, 4.0], ["é", "eeee"]) is None, "bytes are counted"


def test_only_the_right_choice_alone_is_right():
    question = DomainQuestion("Which?", ("oat",), ("rye", "oat"))
    assert chooses_rightly(question, [5.0, 4.0])
    assert not chooses_rightly(question, [4.0, 5.0])
    assert not chooses_rightly(question, [4.0, 4.0])
    assert not chooses_rightly(question, [float("inf"), float("inf")])
