"""What is asked of the cache of grades: another model, other questions or another rule miss it."""

from pathlib import Path

import pytest

import jupiterd
from jupiterd.ctl.model import own_questions
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.model.evaluation_cache import EvaluationCache
from jupiterd.ctl.model.grading_rules import GRADING, SCORING, rules
from jupiterd.ctl.model.own_questions import QuestionEval
from jupiterd.cycle.questions.grades import Grade, grade_lines

ROOT = Path(jupiterd.__file__).parent
QUESTION = '{"question": "Who?", "answer": "Ada"}\n'


def untold(_done: int, _total: int) -> None:
    """Tell nobody."""


def changed(_files: object) -> str:
    return "another rule"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect which models a worker is really asked."""
    seen: list[str] = []

    def written_by(_task: str, _params: object, inputs: dict[str, Path], *_: object) -> str:
        seen.append(inputs["model"].name)
        return grade_lines([Grade(is_right=True, written="Ada")])

    monkeypatch.setattr(own_questions, "written_by", written_by)
    return seen


def test_only_what_was_asked_before_by_the_same_rules_is_known(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = tmp_path / "model", tmp_path / "own.jsonl"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    file.write_text(QUESTION)
    evaluation = QuestionEval(file, "cpu", EvaluationCache(tmp_path))
    model = EvaluatedModel("model", "", folder)

    def grade() -> int:
        evaluation.graded(model, untold)
        return len(asked)

    assert (grade(), grade()) == (1, 1), "the second time it is known"
    file.write_text(QUESTION.replace("Ada", "Bob"))
    assert grade() == 2, "another right answer"
    (folder / "model.safetensors").write_bytes(b"WEIGHTS")
    assert grade() == 3, "other weights of the same size"
    monkeypatch.setattr(own_questions, "rules", changed)
    assert grade() == 4, "another rule"


def test_another_source_of_the_rules_is_another_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all((ROOT / name).is_file() for name in (*GRADING, *SCORING))
    for name in GRADING:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(jupiterd, "__file__", str(tmp_path / "__init__.py"))
    rules.cache_clear()
    before = rules(GRADING)
    file = tmp_path / GRADING[0]
    file.write_bytes(file.read_bytes() + b"# another rule")
    rules.cache_clear()
    assert rules(GRADING) != before
    rules.cache_clear()
