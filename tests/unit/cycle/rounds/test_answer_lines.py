"""Answers side by side: within the terminal, and harmless to it."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jupiterd.cycle.generation.round_answers import BASE, CANDIDATE, INCUMBENT
from jupiterd.cycle.rounds.answer_lines import (
    ANSWER_LINES,
    LEAST_COLUMN,
    LineKind,
    answer_lines,
)
from jupiterd.cycle.rounds.shown_answers import answering_models

MODELS = {BASE: "b" * 64, INCUMBENT: "a" * 64, CANDIDATE: "c" * 64}


def told(*rows: Mapping[str, Any], trouble: str | None = None, **models: str | None) -> Any:
    return {"trouble": trouble, "models": {**MODELS, **models}, "rows": list(rows)}


def row(prompt: str, *answers: str | None) -> dict[str, Any]:
    return {"prompt": prompt, "is_question": False} | dict(
        zip((BASE, INCUMBENT, CANDIDATE), answers, strict=True)
    )


def texts(answers: Any, columns: int = 80, most: int = 2) -> list[str]:
    return [line.text for line in answer_lines(answers, columns, most)]


def test_three_models_stand_in_three_columns():
    answers = told(row("def add(", "x", "x, y):\n    return x", "a, b):\n    return a + b"))
    assert texts(answers) == [
        "What the models write to the same held-out text (1 of 1 prompt; nothing is",
        "decided by it)",
        "",
        "> def add(",
        "base (bbbbbbbb)            incumbent (aaaaaaaa)       candidate (cccccccc)",
        "x                          x, y):                     a, b):",
        "                               return x                   return a + b",
    ]


def test_a_model_that_plays_two_roles_has_one_column():
    answers = told(row("p", "old", "old", "new"), base="a" * 64)
    assert [each.title for each in answering_models(answers)] == ["base and incumbent", CANDIDATE]
    assert texts(answers, 60)[-1].split() == ["old", "new"]
    alone = told(row("p", None, None, "new"), base=None, incumbent=None)
    assert texts(alone)[4:] == ["candidate (cccccccc)", "new"]


def test_on_a_narrow_terminal_they_stand_below_each_other():
    found = texts(told(row("p", "one", "two", None)), 3 * LEAST_COLUMN)
    assert found[4:] == [
        "base (bbbbbbbb)", "one", "incumbent (aaaaaaaa)", "two", "candidate (cccccccc)",
        "(no answer)",
    ]  # fmt: skip


def test_of_many_prompts_and_long_answers_a_part_is_shown():
    long = "\n".join(map(str, range(50)))
    found = answer_lines(told(*[row("p", long, long, " ")] * 9), 80, 2)
    assert [line.kind for line in found].count(LineKind.PROMPT) == 2
    shown = [line.text.split() for line in found if line.kind is LineKind.ANSWER and line.text]
    assert len(shown) == 2 * ANSWER_LINES
    assert shown[ANSWER_LINES - 1] == ["...", "..."]
    assert shown[0] == ["0", "0", "(blank", "lines", "alone)"]


def test_answers_that_go_round_say_so_and_are_counted_above():
    looping, blank = "the cache and " * 9, f".{chr(10) * 60}"
    answers = told(row("p", looping, "It is fast.", blank), row("q", "", None, blank))
    found = texts(answers)
    said = " ".join(found[2:5])
    assert (
        "small models easily repeat themselves: 1 of 2 answers of base, 2 of 2 answers of" in said
    )
    assert "(repeats itself)" in " ".join(found)
    assert "(then blank lines" in " ".join(found)
    assert "(ends at once)" in " ".join(found)
    assert "(no answer)" in " ".join(found)
    assert sum(line.kind is LineKind.NOTE for line in answer_lines(answers, 80, 2)) == 3


def test_of_a_long_text_the_end_is_shown_where_the_models_go_on_and_of_a_question_the_beginning():
    long = "\n".join(f"line {n}" for n in range(9))
    text, question = row(long, "a", "b", "c"), row(long, "a", "b", "c") | {"is_question": True}
    assert texts(told(text))[3:7] == ["> ...", "  line 6", "  line 7", "  line 8"]
    assert texts(told(question))[3:7] == ["> line 0", "  line 1", "  line 2", "  ..."]


def test_a_round_without_answers_has_no_lines_unless_it_says_why():
    assert texts(told()) == []
    assert texts(told(trouble="memory\x1b[2J ran out")) == [
        "answers are missing: memory?[2J ran out"
    ]


hostile = st.text(st.characters(codec="latin-1") | st.sampled_from("\x1b\t\r\u202e\u0301漢😀 \n"))


@given(
    st.lists(st.builds(row, hostile, hostile, st.none() | hostile, hostile), max_size=3),
    st.integers(-5, 200),
)
def test_no_line_is_wider_than_the_terminal_or_steers_it(rows: list[Any], columns: int):
    found = answer_lines(told(*rows, trouble="x\x1b"), columns, 2)
    assert all(line.text.isprintable() for line in found)
    assert all(cell_len(line.text) <= max(columns, LEAST_COLUMN) for line in found)
