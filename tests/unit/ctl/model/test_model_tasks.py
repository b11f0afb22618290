"""`jupiterctl model eval` with tasks of lm-evaluation-harness, whose worker is a stand-in here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.model import harness_eval
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.model.evaluation_cache import FOLDER, EvaluationCache
from jupiterd.ctl.model.harness_eval import AskedTasks, ScoredModel
from jupiterd.ctl.model.harness_lines import harness_document, harness_lines
from jupiterd.ctl.model.spread_eval import SpreadEval
from jupiterd.cycle.questions.task_scores import (
    FoundTask,
    TaskScore,
    score_lines,
    tasks_text,
)
from jupiterd.errors import NotFoundError

ONES = (1.0,) * 40
RIGHT, WRONG = (*[1.0] * 38, 0.0, 0.0), (*[1.0] * 4, *[0.0] * 36)


def acc(task: str, values: tuple[float, ...]) -> TaskScore:
    share = sum(values) / len(values)
    return TaskScore(task, task, "acc", "none", share, 0.04, True, 40, values, ONES)


def group(value: float) -> TaskScore:
    return TaskScore("all\x1b[2J", "all", "f1", "strict", value, 0.05, True, 80)


PERPLEXITY = TaskScore("prose", "prose", "perplexity", "none", 9.5, None, False, 3)
GOOD = ScoredModel(
    EvaluatedModel("python/2", "a" * 64, Path("/a")),
    [acc("sums", RIGHT), group(0.6), PERPLEXITY], 3,
)  # fmt: skip
POOR = ScoredModel(
    EvaluatedModel("base\x1b", "b" * 64, Path("/b")),
    [acc("sums", WRONG), group(0.55), PERPLEXITY], 0,
)  # fmt: skip
ASKED = AskedTasks(("sums", "all", "prose"))


def test_a_model_alone_has_a_row_for_each_figure():
    assert harness_lines(harness_document(ASKED, [GOOD])) == [
        "task   metric      of  python/2",
        "sums   acc         40  0.9500 (95 %: 0.8350 to 0.9862)",
        "all    f1 strict   80  0.6000 (95 %: 0.5020 to 0.6980)",
        "prose  perplexity  3   9.5000",
    ]


def test_two_models_differ_where_their_documents_show_it():
    document = harness_document(ASKED, [GOOD, POOR])
    sums, both, prose = document["scores"]
    assert (sums["difference"]["is_paired"], both["difference"]["is_paired"]) == (True, False)
    assert prose["difference"]["low"] is None
    assert [line.split("  ")[-1].strip() for line in harness_lines(document)] == [
        "shown", "better", "no difference", "-",
    ]  # fmt: skip
    turned = harness_document(ASKED, [POOR, GOOD])
    assert harness_lines(turned)[1].endswith("worse")


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Let a worker answer at once; return what it was asked to score."""
    asked: list[Mapping[str, Any]] = []

    def written(task: str, params: Mapping[str, Any], inputs: Mapping[str, Path], *_: Any) -> str:
        if task == harness_eval.FINDING_TASKS:
            if "unknown" in params["names"]:
                raise NotFoundError("lm-evaluation-harness has no task unknown", "is it known?")
            names = params["names"] or ["own"]
            return tasks_text([FoundTask(name, f"content of {name}", 40) for name in names])
        asked.append({"names": params["names"], **inputs})
        return score_lines(acc(name, RIGHT) for name in params["names"])

    monkeypatch.setattr(harness_eval, "written_by", written)
    monkeypatch.setattr(harness_eval, "find_spec", lambda _: True)
    return asked


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def test_what_was_computed_before_is_not_computed_again(worker, ctl, model: Path):
    first = ctl("model", "eval", str(model), "--tasks", "sums", "-o", "json")
    again = ctl("model", "eval", str(model), "--tasks", "sums", "-o", "json")
    assert (first.exit_code, again.exit_code, len(worker)) == (0, 0, 1)
    found = [json.loads(ran.out)["eval"] for ran in (first, again)]
    assert [each["models"][0]["computed_tasks"] for each in found] == [1, 0]
    assert found[0]["scores"] == found[1]["scores"]
    ctl("model", "eval", str(model), "--tasks", "sums, prose")
    assert worker[-1]["names"] == ["prose"]
    (model / "model.safetensors").write_bytes(b"other weights")
    ctl("model", "eval", str(model), "--tasks", "sums,prose")
    assert worker[-1]["names"] == ["sums", "prose"]


def test_a_model_of_the_cluster_is_scored_beside_what_its_cycle_began_with(
    worker, daemon, ctl, model: Path, tmp_path: Path
):
    daemon.documents["model_files"] = {
        "schema": "jupiter/v1",
        "model": {"id": "c" * 64, "name": "python/2", "files_at": str(model)},
    }
    (tmp_path / "own").mkdir()
    own = str(tmp_path / "own")
    ran = ctl("model", "eval", "promoted", "--tasks", own, "--beside", "base", "-o", "json")
    assert ran.exit_code == 0, ran.err
    found = json.loads(ran.out)["eval"]
    assert [each["model"] for each in found["models"]] == ["promoted (python/2)", "base (python/2)"]
    assert [each["computed_tasks"] for each in found["models"]] == [1, 0]
    assert worker[0] == {"names": ["own"], "model": model, "tasks": tmp_path / "own"}


TASK_NODES = {
    "schema": "jupiter/v1",
    "nodes": [
        {"node": "d" * 64, "name": "attic", "has_model": True, "why_not": ""},
        {"node": "e" * 64, "name": "cellar", "has_model": True, "why_not": "trains"},
        {"node": "f" * 64, "name": "porch", "has_model": False, "why_not": "doesn't have it"},
    ],
}


@pytest.fixture
def everywhere(daemon, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[SpreadEval]:
    """Let three members be there, of which two have the model; return what is asked on them."""
    daemon.documents["model_files"] = {
        "schema": "jupiter/v1",
        "model": {"id": "c" * 64, "name": "python/2", "files_at": str(model)},
    }
    daemon.documents["task_nodes"] = TASK_NODES
    asked: list[SpreadEval] = []

    def written(self: SpreadEval, params: Mapping[str, Any], *_: Any) -> tuple[str, list[str]]:
        asked.append(self)
        return score_lines(acc(name, RIGHT) for name in params["names"]), ["attic", "this machine"]

    monkeypatch.setattr(SpreadEval, "written", written)
    return asked


def test_members_that_have_the_model_and_do_not_train_are_asked_with_this_machine(
    worker, everywhere: list[SpreadEval], ctl
):
    ran = ctl("model", "eval", "python/2", "--tasks", "sums", "-o", "json")
    assert ran.exit_code == 0, ran.err
    assert [each.name for each in everywhere[0].nodes] == ["attic"]
    assert worker == []
    assert json.loads(ran.out)["eval"]["models"][0]["answered_by"] == ["attic", "this machine"]
    assert ran.err.strip() == (
        "jupiterctl: python/2 is asked on this machine, attic; not asked: cellar trains"
    )


def test_alone_asks_no_member(worker, everywhere: list[SpreadEval], ctl, model: Path):
    ran = ctl("model", "eval", "python/2", "--tasks", "sums", "--alone", "-o", "json")
    assert (ran.exit_code, ran.err, everywhere) == (0, "", [])
    assert worker[0]["model"] == model
    assert json.loads(ran.out)["eval"]["models"][0]["answered_by"] == []


def test_a_folder_s_model_is_asked_here_alone(worker, everywhere: list[SpreadEval], ctl, model):
    assert ctl("model", "eval", str(model), "--tasks", "sums").exit_code == 0
    assert (everywhere, len(worker)) == ([], 1)


def test_an_unknown_task_is_told_before_a_model_is_fetched(worker, ctl):
    ran = ctl("model", "eval", "python/2", "--tasks", "unknown")
    assert (ran.exit_code, worker) == (6, [])
    assert ran.err.splitlines()[0].endswith("has no task unknown")


def test_without_the_harness_one_line_says_what_to_install(ctl, monkeypatch):
    monkeypatch.setattr(harness_eval, "find_spec", lambda _: None)
    ran = ctl("model", "eval", "python/2", "--tasks", "hellaswag")
    assert ran.exit_code != 0
    assert "need lm_eval" in ran.err
    assert "pip install 'jupiterd[evaluation]'" in ran.err


def test_tasks_without_a_name_are_refused(worker, ctl):
    ran = ctl("model", "eval", "python/2", "--tasks", " , ")
    assert (ran.exit_code, worker) == (2, [])
    assert "--tasks names nothing" in ran.err


def test_a_folder_that_is_no_model_is_told(worker, ctl, tmp_path: Path):
    ran = ctl("model", "eval", str(tmp_path), "--tasks", "sums")
    assert ran.exit_code == 6
    assert "has no config.json" in ran.err


def test_a_damaged_score_is_computed_again(tmp_path: Path):
    cache = EvaluationCache(tmp_path)
    cache.keep("model", "task", [acc("sums", RIGHT)])
    assert cache.found("model", "task") == [acc("sums", RIGHT)]
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_text("{")
    assert cache.found("model", "task") is None


def test_where_no_daemon_has_a_folder_nothing_is_kept(tmp_path: Path):
    cache = EvaluationCache(tmp_path / "none")
    cache.keep("model", "task", [acc("sums", RIGHT)])
    assert cache.found("model", "task") is None
    assert not (tmp_path / "none").exists()
