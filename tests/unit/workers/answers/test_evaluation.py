"""A round's models answer the cycle's prompts once it is scored; nothing fails because of that."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from jupiterd.cycle.base.work_item import HALVINGS
from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.generation.round_answers import (
    ANSWERS_FILE,
    BASE,
    CANDIDATE,
    INCUMBENT,
    TROUBLE,
    RoundAnswers,
    read_answers,
)
from jupiterd.cycle.questions.accuracy import Accuracy
from jupiterd.cycle.questions.question_file import QUESTIONS_FILE
from jupiterd.cycle.questions.round_grades import TROUBLE as OWN_TROUBLE
from jupiterd.cycle.questions.round_grades import grades_in
from jupiterd.protocol.frames import TaskFinished
from tests.support.workers.data_material import function, real, run_worker, write
from tests.support.workers.tiny_models import write_model

pytestmark = pytest.mark.timeout(120)
"""Several worker processes a test, on a machine that may be busy."""

PARAMS = {
    "piece": 0,
    "pieces": 1,
    "min_document_bytes": 50,
    "max_document_bytes": 400,
    "max_cluster_documents": 30,
    "parts": ["gate", "dev"],
    "completions": 2,
    "answers": {
        "cycle": "c" * 16,
        "models": {"candidate": "c" * 64, "incumbent": "a" * 64, "base": "a" * 64},
    },
}
OLD, NEW = "a" * 64, "c" * 64


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what the piece reads; the model to beat is the one that the cycle began with."""
    folder = tmp_path_factory.mktemp("inputs")
    write_model(folder / "new" / "files", "llama")
    old = write_model(folder / "old" / "files", "llama", num_hidden_layers=1)
    shown = [real(function(n), cluster=f"m{n}") for n in range(6)]
    questions = [
        replace(
            real(f"Why is {n}?\n\nSo.", cluster=f"q{n}"),
            split=DEV,
            messages=(
                {"role": "user", "content": f"Why is {n}?"},
                {"role": "assistant", "content": "So."},
            ),
        )
        for n in range(2)
    ]
    dev = [replace(each, split=DEV) for each in shown[:3]]
    return {
        "model": folder / "new" / "files",
        "incumbent": old,
        "base": old,
        "kept": write(folder / "kept", [real(function(99))]),
        "holdout.0": write(folder / "held-out", [*dev, *shown[3:], *questions]),
    }


def done(tmp_path: Path, inputs: dict[str, Path], **params: object) -> TaskFinished:
    end = run_worker("evaluate", {**PARAMS, **params}, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished), end
    assert (tmp_path / "out" / "scores" / "scores.jsonl").read_text().count("\n") >= 3
    return end


def answers_in(tmp_path: Path) -> RoundAnswers:
    return read_answers((tmp_path / "out" / "answers" / ANSWERS_FILE).read_text())


def test_the_models_answer_the_same_prompts_and_the_scores_stay_as_they_were(
    tmp_path: Path, inputs: dict[str, Path]
) -> None:
    end = done(tmp_path / "with", inputs)
    assert end.outputs == {"scores": "scores", "answers": "answers"}
    assert end.summary == {}
    found = answers_in(tmp_path / "with")
    assert found.models == {CANDIDATE: NEW, INCUMBENT: OLD, BASE: OLD}
    assert sorted(each.is_question for each in found.prompts) == [False] * 3 + [True] * 2
    assert {len(each) for each in found.written.values()} == {5}
    assert any(found.written[NEW])
    assert found.written[NEW] != found.written[OLD]
    without = done(tmp_path / "without", inputs, answers=None)
    assert without.outputs == {"scores": "scores"}
    assert end.counts["texts"] == without.counts["texts"] + 2 * 5
    files = [
        {each.name: each.read_bytes() for each in (tmp_path / name / "out" / "scores").iterdir()}
        for name in ("with", "without")
    ]
    assert files[0] == files[1]


def test_answers_of_an_earlier_round_are_kept_and_the_rest_is_written(
    tmp_path: Path, inputs: dict[str, Path]
) -> None:
    done(tmp_path / "first", inputs)
    before = answers_in(tmp_path / "first")
    marked = RoundAnswers(before.models, before.prompts, {OLD: ("as before",) * 5})
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / ANSWERS_FILE).write_text(marked.to_json())
    done(tmp_path / "next", {**inputs, "previous_answers": folder})
    now = answers_in(tmp_path / "next")
    assert now.written == {OLD: ("as before",) * 5, NEW: before.written[NEW]}
    (folder / ANSWERS_FILE).write_text("{")  # another version's, or damaged
    done(tmp_path / "again", {**inputs, "previous_answers": folder})
    assert answers_in(tmp_path / "again") == before


def test_a_model_that_cant_answer_keeps_nobody_else_from_it(
    tmp_path: Path, inputs: dict[str, Path]
) -> None:
    empty = tmp_path / "files"
    empty.mkdir()
    end = done(tmp_path, {**inputs, "model": empty})
    assert str(end.summary[TROUBLE]).startswith("candidate: ")
    assert set(answers_in(tmp_path).written) == {OLD}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({HALVINGS: 1}, "memory ran out"),
        (
            {"purged": ["test:m0", "test:m1", "test:m2", "test:q0", "test:q1"]},
            "no development text",
        ),
    ],
)
def test_what_keeps_all_from_answering_is_told_and_fails_nothing(
    tmp_path: Path, inputs: dict[str, Path], params: dict[str, object], reason: str
) -> None:
    end = done(tmp_path, inputs, **params)
    assert end.outputs == {"scores": "scores"}
    assert reason in str(end.summary[TROUBLE])


def test_the_models_are_asked_the_domains_own_questions_once_each(
    tmp_path: Path, inputs: dict[str, Path]
) -> None:
    rows = [
        {"question": "Why is 1?", "answer": "So."},
        {"question": "def", "choices": ["(", ")"], "answer": 1},
    ]
    folder = tmp_path / "questions"
    folder.mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / QUESTIONS_FILE).write_text(lines)
    models = {"candidate": NEW, "incumbent": OLD, "base": OLD}
    wanted: dict[str, Any] = {"models": models, "known": {}}
    given = {**inputs, "questions": folder}
    end = done(tmp_path / "first", given, own_questions=wanted)
    grades = grades_in(end.counts)
    assert {model: each.questions for model, each in grades.items()} == {OLD: 2, NEW: 2}
    assert end.counts["own_right"] == grades[NEW].right
    assert (end.outputs["answers"], end.summary) == ("answers", {})
    wanted["known"] = {OLD: [2, 2], NEW: [7, 9]}
    again = grades_in(done(tmp_path / "next", given, own_questions=wanted).counts)
    assert again == {OLD: Accuracy(2, 2), NEW: grades[NEW]}, "of so many it knows one"
    (folder / QUESTIONS_FILE).write_text("{")
    failed = done(tmp_path / "bad", given, own_questions=wanted)
    assert "line 1 of" in str(failed.summary[OWN_TROUBLE])
    assert grades_in(failed.counts) == {}
