"""`jupiterctl model eval`: own questions, answered by real worker processes."""

import json
from pathlib import Path

import pytest

from jupiterd.ctl.model.eval_lines import NO_DIFFERENCE, eval_document, eval_lines
from jupiterd.ctl.model.evaluated_model import evaluated_model
from jupiterd.ctl.model.own_questions import GradedModel
from jupiterd.cycle.questions.grades import Grade
from jupiterd.cycle.questions.question_file import DomainQuestion
from jupiterd.errors import NotFoundError
from tests.support.ctl.model_material import MODEL

ASKED = [
    *(DomainQuestion(f"What is {n}?", (str(n),), topic="numbers") for n in range(30)),
    DomainQuestion("Which\x1b[2J?", ("rye",), ("rye", "oat"), topic="bread\x1b[2J"),
]
GOOD = GradedModel("python/2", "a" * 64, (*[Grade(True, "1")] * 30, Grade(True, picked=0)))
POOR = GradedModel("./mine\x1b", "", (*[Grade(False, "no")] * 30, Grade(True, picked=0)))


def test_a_model_alone_has_a_row_for_each_topic_and_one_for_all():
    document = eval_document("own.jsonl", ASKED, [GOOD])
    assert document["difference"] is None
    assert eval_lines(document) == [
        "questions  of  python/2",
        "bread?[2J  1   100.0 % right (95 %: 20.7 to 100.0)",
        "numbers    30  100.0 % right (95 %: 88.6 to 100.0)",
        "all        31  100.0 % right (95 %: 89.0 to 100.0)",
        "-o json has every answer, and whether it is nothing but a right one",
    ]


def test_two_models_differ_where_the_questions_show_it():
    better = eval_lines(eval_document("f", ASKED, [GOOD, POOR]))[-2]
    assert better == "python/2 beside ./mine?: +96.8 points (95 %: +78.0 to +100.0), better"
    assert eval_lines(eval_document("f", ASKED, [POOR, GOOD]))[-2].endswith(", worse")
    assert eval_lines(eval_document("f", ASKED, [GOOD, GOOD]))[-2].endswith(NO_DIFFERENCE)


def test_each_answer_is_in_the_document():
    answers = eval_document("f", ASKED, [GOOD, POOR])["answers"]
    assert answers[0] == {
        "question": "What is 0?", "right": ["0"], "given": ["1", "no"], "is_right": [True, False],
        "is_exact": [False, False],
    }  # fmt: skip
    assert answers[-1]["given"] == ["rye", "rye"]
    none = GradedModel("m", "", (*[Grade(False)] * 31,))
    assert eval_document("f", ASKED, [none])["answers"][-1]["given"] == [None]


@pytest.fixture
def warm_workers(warm_starts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers forked from a process that has imported torch, which has one thread."""
    monkeypatch.setattr("jupiterd.processes.environment.usable_cores", lambda: 1)


@pytest.mark.timeout(120)
def test_a_tiny_model_answers_own_questions_beside_itself(
    warm_workers, daemon, ctl, tmp_path: Path
):
    pytest.importorskip("torch")
    from tests.support.workers.tiny_models import write_model

    folder = write_model(tmp_path / "stored", "llama")
    daemon.documents["model_files"] = {
        "schema": "jupiter/v1",
        "model": {"id": MODEL, "name": "python/2", "files_at": str(folder)},
    }
    rows = [
        {"question": "Who?", "answer": "Ada"},
        {"question": "Which?", "choices": ["the bread", "stone"], "answer": 0},
    ]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    own, other = str(file), str(folder)
    ran = ctl("model", "eval", "python/2", "--tasks", own, "--beside", other, "-o", "json")
    assert (ran.exit_code, ran.err) == (0, "")
    found = json.loads(ran.out)["eval"]
    first, second = found["models"]
    assert (first["model"], second["id"]) == ("python/2", None)
    assert (first["right"], first["low"]) == (second["right"], second["low"])
    assert found["difference"] | {"low": 0, "high": 0} == {
        "only_first": 0, "only_second": 0, "share": 0, "low": 0, "high": 0,
    }  # fmt: skip
    assert [len(each["given"]) for each in found["answers"]] == [2, 2]


def test_an_adapter_alone_is_no_model_to_ask(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(NotFoundError, match="holds a LoRA adapter, not a model"):
        evaluated_model(tmp_path, str(tmp_path))


def test_a_file_that_can_not_be_used_is_told_before_anything_is_fetched(
    warm_workers, ctl, tmp_path: Path
):
    missing = ctl("model", "eval", "python/2", "--tasks", str(tmp_path / "none.jsonl"))
    assert missing.exit_code == 6
    assert "none.jsonl can't be read" in missing.err
    (tmp_path / "own.jsonl").write_text('{"question": "Who?"}\n')
    wrong = ctl("model", "eval", "python/2", "--tasks", str(tmp_path / "own.jsonl"))
    assert wrong.exit_code == 2
    assert "line 1 of own.jsonl: its answer is missing" in wrong.err
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    (tmp_path / "own.jsonl").write_text('{"question": "Who?", "answer": "Ada"}\n')
    broken = ctl("model", "eval", str(tmp_path / "m"), "--tasks", str(tmp_path / "own.jsonl"))
    assert broken.exit_code != 0
    assert "m" in broken.err
