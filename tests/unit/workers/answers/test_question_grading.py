"""Own questions answered by a tiny model, of which only the form of what comes out is known."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from jupiterd.cycle.questions.grades import GRADES_FILE, read_grades
from jupiterd.cycle.questions.question_file import DomainQuestion
from jupiterd.protocol.frames import TaskFailed, TaskFinished
from jupiterd.workers.answers.question_grading import graded
from tests.support.workers.data_material import run_worker
from tests.support.workers.tiny_models import write_model

CHOICES = ("the bread rises", "as the yeast rests", "stone", "x")


@pytest.fixture(scope="module", params=[False, True], ids=["goes on", "is talked to"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return write_model(folder, "llama", is_chat=request.param)


def test_what_a_model_writes_and_picks_is_right_where_the_file_says_so(model: Path) -> None:
    asked = [
        DomainQuestion("What rises?", ("nobody says this",)),
        DomainQuestion("What rises here?", CHOICES[:1], CHOICES),
        DomainQuestion("What rests?", ("nor this",), topic="rest"),
    ]
    told: list[int] = []
    first = graded(model, asked, {}, told.append)
    assert [each.is_right for each in first[::2]] == [False, False]
    assert first[1].picked is not None
    assert (told[-1], told) == (3, sorted(told))
    picked = CHOICES[first[1].picked]
    line = next(each for each in first[0].written.splitlines() if each.strip())
    own = [
        DomainQuestion("What rises?", ("x", line)),
        DomainQuestion("What rises here?", (picked,), CHOICES),
    ]
    again = graded(model, own, {}, lambda _: None)
    assert [each.is_right for each in again] == [True, True]
    assert again[0].written == first[0].written


def test_the_order_of_choices_changes_nothing(model: Path) -> None:
    found = {
        choices[
            graded(model, [DomainQuestion("Which?", choices[:1], choices)], {}, print)[0].picked
            or 0
        ]
        for choices in (CHOICES, CHOICES[::-1])
    }
    assert len(found) == 1


def test_the_worker_writes_a_grade_for_each_question(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    rows = [{"question": "Who?", "answer": "Ada"},
            {"question": "Which?", "choices": CHOICES, "answer": 2}]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    inputs = {"model": model, "questions": file}
    end = run_worker("grade_questions", {}, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished), end
    grades = read_grades((tmp_path / "out" / "grades" / GRADES_FILE).read_text())
    assert end.counts == {"questions": 2, "right": sum(each.is_right for each in grades)}
    file.write_text("nonsense\n")
    end = run_worker("grade_questions", {}, inputs, tmp_path / "again")
    assert isinstance(end, TaskFailed)
    assert end.message == "line 1 of own.jsonl: it is no JSON"
