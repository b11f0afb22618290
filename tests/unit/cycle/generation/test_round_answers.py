"""The file of a round's answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.generation.asked_prompts import MAX_QUESTION_CHARS, PROMPTS, AskedPrompt
from jupiterd.cycle.generation.round_answers import (
    BASE,
    CANDIDATE,
    INCUMBENT,
    MAX_ANSWER_CHARS,
    MAX_ANSWERS_BYTES,
    RoundAnswers,
    read_answers,
)
from jupiterd.errors import CorruptArtifactError

NEW, OLD = "c" * 64, "a" * 64
ASKED = (AskedPrompt("1" * 64, "def f("), AskedPrompt("2" * 64, "Why?", is_question=True))
ANSWERS = RoundAnswers(
    {CANDIDATE: NEW, INCUMBENT: OLD, BASE: OLD}, ASKED, {NEW: ("x):", "So."), OLD: ("y", "")}
)


@given(
    st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.booleans()), max_size=PROMPTS),
    st.dictionaries(st.sampled_from([BASE, INCUMBENT, CANDIDATE]), st.sampled_from("abc")),
    st.data(),
)
def test_what_was_written_is_read_again_whatever_is_in_it(rows, models, data):
    prompts = tuple(AskedPrompt(*row) for row in rows)
    answers = st.lists(st.text(max_size=9), min_size=len(prompts), max_size=len(prompts))
    written = {
        model: tuple(data.draw(answers))
        for model in set(models.values())
        if data.draw(st.booleans())
    }
    kept = RoundAnswers(models, prompts, written)
    assert read_answers(kept.to_json()) == kept


def test_the_largest_file_is_within_what_is_read():
    prompts = [AskedPrompt("f" * 64, "\U0001f600" * MAX_QUESTION_CHARS) for _ in range(PROMPTS)]
    models = {
        role: letter * 64 for role, letter in ((BASE, "a"), (INCUMBENT, "b"), (CANDIDATE, "c"))
    }
    written = dict.fromkeys(models.values(), ("😀" * MAX_ANSWER_CHARS,) * PROMPTS)
    assert len(RoundAnswers(models, tuple(prompts), written).to_json()) < MAX_ANSWERS_BYTES


def test_a_model_that_plays_two_roles_answers_once():
    assert ANSWERS.to_plain() == {
        "models": {BASE: OLD, INCUMBENT: OLD, CANDIDATE: NEW},
        "rows": [
            {"prompt": "def f(", "is_question": False, BASE: "y", INCUMBENT: "y", CANDIDATE: "x):"},
            {"prompt": "Why?", "is_question": True, BASE: "", INCUMBENT: "", CANDIDATE: "So."},
        ],
    }
    alone = RoundAnswers({CANDIDATE: NEW}, ASKED[:1], {})
    assert alone.to_plain()["rows"][0] | {"prompt": ""} == {
        "prompt": "", "is_question": False, BASE: None, INCUMBENT: None, CANDIDATE: None,
    }  # fmt: skip
    assert dict(ANSWERS.of_model(OLD)) == {ASKED[0]: "y", ASKED[1]: ""}
    assert ANSWERS.of_model("f" * 64) == {}


def _with(**changes: object) -> str:
    return json.dumps(json.loads(ANSWERS.to_json()) | changes)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        "{}",
        "[" * 100_000,
        _with(models={CANDIDATE: 1}),
        _with(models=None),
        _with(prompts=[{"document": "d", "text": 3, "is_question": False}]),
        _with(prompts=json.loads(ANSWERS.to_json())["prompts"] * 11),
        _with(written={NEW: ["only one"]}),
        _with(written={NEW: ["a", {"b": 1}]}),
    ],
)
def test_another_file_is_told(text):
    with pytest.raises(CorruptArtifactError):
        read_answers(text)


def test_answers_of_models_without_a_role_and_long_ones_are_cut():
    read = read_answers(_with(written={NEW: ["x" * 9_999, ""], "f" * 64: ["a", "b"]}))
    assert read.written == {NEW: ("x" * MAX_ANSWER_CHARS, "")}
    long = [{"document": "d", "text": "x" * 100_000, "is_question": False}]
    assert read_answers(_with(prompts=long, written={})).prompts[0].text == "x" * MAX_QUESTION_CHARS
