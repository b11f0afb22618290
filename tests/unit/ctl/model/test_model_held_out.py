"""`jupiterctl model eval` without tasks: bits per byte on the text that a round was judged by."""

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("torch")

from jupiterd.workers.evaluate.held_out import evaluate
from jupiterd.workers.evaluate.score_table import Means
from tests.support.ctl.model_material import MODEL, row
from tests.support.workers.tiny_models import write_model
from tests.unit.ctl.model.test_lm_eval_export import HELD_OUT, judged
from tests.unit.ctl.model.test_model_eval import warm_workers

__all__ = ["judged", "warm_workers"]

OTHER = "f" * 64


@pytest.fixture
def known(daemon, tmp_path: Path) -> None:
    """Let the daemon know the model that was judged, and what its cycle began with."""
    files = {"id": MODEL, "name": "python/2", "files_at": str(tmp_path / "stored")}
    daemon.documents["model_files"] = {"model": files}
    base = write_model(tmp_path / "base", "llama")
    began = {"id": OTHER, "name": "python/2/base", "files_at": str(base)}
    daemon.documents["model_files/python/2/base"] = {"model": began}
    daemon.documents["models"] = {"models": [row(3, id=OTHER, verdict=None), row(2, id=MODEL)]}


@pytest.mark.timeout(120)
def test_a_model_has_the_bits_per_byte_of_its_verdict(warm_workers, judged, known, ctl):
    ran = ctl("model", "eval", "python/2", "--beside", "base", "-o", "json")
    assert ran.exit_code == 0, ran.err
    found = json.loads(ran.out)["eval"]
    own, base = (each["bits_per_byte"] for each in found["models"])
    nats = sum(each.candidate_nats for each in judged.documents)
    size = sum(each.bytes for each in judged.documents)
    assert own["value"] == pytest.approx(nats / math.log(2) / size, rel=1e-6)
    assert (found["round"], found["documents"], found["bytes"]) == ("python/2", 12, size)
    assert own["low"] < own["value"] < own["high"]
    assert found["difference"]["value"] == pytest.approx(own["value"] - base["value"])


@pytest.mark.timeout(120)
def test_a_folder_of_this_machine_is_scored_once(
    warm_workers, judged, known, ctl, tmp_path, monkeypatch
):
    folder = str(tmp_path / "base")
    first = ctl("model", "eval", folder, "-o", "json")
    assert (first.exit_code, first.err) == (0, "")
    monkeypatch.setattr("jupiterd.ctl.model.held_out_eval.written_by", None)
    assert ctl("model", "eval", folder, "-o", "json").out == first.out
    weights = next(Path(folder).glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes() + b" ")
    assert ctl("model", "eval", folder, "-o", "json").exit_code != 0, "another model is scored"


@pytest.mark.timeout(120)
def test_the_model_of_a_training_run_is_scored_by_what_the_run_held_out(
    warm_workers, judged, known, daemon, ctl, tmp_path
):
    run = row(4, kind="run", id=MODEL, name="python/2", verdict=None)
    daemon.documents["models"] = {"models": [row(2, id=OTHER), run]}
    daemon.documents[f"run_held_out/{MODEL}"] = {"held_out": {"texts": [str(tmp_path / "texts")]}}
    ran = ctl("model", "eval", "python/2", "-o", "json")
    assert ran.exit_code == 0, ran.err
    found = json.loads(ran.out)["eval"]
    texts = [each.text for each in HELD_OUT]
    size = sum(len(text.encode()) for text in texts)
    assert (found["round"], found["documents"], found["bytes"]) == ("python/2", len(texts), size)
    means = Means(4, "torch", "cpu")
    ours, _ = evaluate(tmp_path / "stored", tmp_path / "texts", means)
    assert found["models"][0]["bits_per_byte"]["value"] == pytest.approx(ours, rel=1e-6)


def test_before_anything_is_trained_there_is_no_text(known, daemon, ctl):
    daemon.documents["models"] = {"models": [row(3, kind="generator", verdict=None)]}
    ran = ctl("model", "eval", "python/2")
    assert ran.exit_code == 6
    assert "nothing was trained yet" in ran.err


def test_what_two_models_differ_by_is_told():
    from jupiterd.ctl.model.held_out_eval import held_out_lines

    figure = {"value": 1.5, "low": 1.25, "high": 1.75}
    document = {
        "round": "python/2",
        "documents": 12,
        "models": [{"model": name, "bits_per_byte": figure} for name in ("python/2", "base")],
        "difference": {"value": -0.5, "low": -0.625, "high": -0.375},
        "questions": None,
    }
    assert held_out_lines(document) == [
        "held-out text of python/2: 12 documents",
        "model     bits per byte",
        "python/2  1.5000 (95 %: 1.2500 to 1.7500)",
        "base      1.5000 (95 %: 1.2500 to 1.7500)",
        "python/2 beside base: -0.5000 (95 %: -0.6250 to -0.3750), better",
    ]
    alone = document | {"difference": None, "models": document["models"][:1]}
    assert len(held_out_lines(alone)) == 3


QUESTIONS = [
    {"question": "Who?", "answer": "Ada"},
    {"question": "Which?", "choices": ["the bread", "stone"], "answer": 0, "topic": "bread"},
]


@pytest.fixture
def own_questions(daemon, tmp_path: Path) -> Path:
    """Let the daemon know the questions of the cycle."""
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS))
    daemon.documents["questions"] = {"questions": {"domain": "python", "file": str(file)}}
    return file


@pytest.mark.timeout(120)
def test_the_domains_own_questions_are_a_second_table(
    warm_workers, judged, known, own_questions, ctl, monkeypatch
):
    ran = ctl("model", "eval", "python/2", "--beside", "base", "-o", "json")
    assert (ran.exit_code, ran.err) == (0, "")
    found = json.loads(ran.out)["eval"]
    assert (found["kind"], found["questions"]["kind"]) == ("held-out", "own")
    first, second = found["questions"]["models"]
    assert (first["questions"], second["model"]) == (2, "base")
    monkeypatch.setattr("jupiterd.ctl.model.own_questions.written_by", None)
    alone = ctl("model", "eval", "python/2", "--tasks", "own", "--beside", "base")
    assert (alone.exit_code, alone.err) == (0, ""), "nothing is answered twice"
    title, heads, *_ = alone.out.splitlines()
    assert title == "questions of python"
    assert heads.split() == ["questions", "of", "python/2", "base"]
    again = json.loads(ctl("model", "eval", "python/2", "--tasks", "own", "-o", "json").out)
    assert again["eval"]["models"] == [first]
    own_questions.write_text(json.dumps(QUESTIONS[0]) + "\n")
    assert ctl("model", "eval", "python/2", "--tasks", "own").exit_code != 0, "others are asked"


def test_questions_that_can_not_be_asked_cost_no_score(
    warm_workers, judged, known, own_questions, ctl
):
    own_questions.write_text("no question\n")
    ran = ctl("model", "eval", "python/2", "-o", "json")
    assert ran.exit_code == 0, ran.err
    found = json.loads(ran.out)["eval"]
    assert (found["documents"], found["questions"]) == (12, None)
    assert "questions.jsonl" in ran.err


def test_where_no_cycle_has_questions_that_is_told(warm_workers, known, judged, ctl):
    ran = ctl("model", "eval", "python/2", "--tasks", "own")
    assert ran.exit_code == 6
    assert "no cycle has questions of its own" in ran.err
