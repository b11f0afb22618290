import json
import math
import random

import pytest

from jupiterd.cycle.gate import DocumentScore, GateSettings, decide
from jupiterd.frames import TaskFinished
from jupiterd.workers.evaluate.judge import summary_of, write_verdict
from jupiterd.workers.evaluate.score_file import read_scores, write_scores
from tests.unit.workers.data_material import run_worker

SETTINGS = GateSettings(0.05, 0.005, 0.02, 20, 5)
PARAMS = {
    "gate": {"alpha": 0.05, "margin_bpb": 0.005, "stratum_veto_bpb": 0.02},
    "holdout": {"fraction": 0.2, "salt": "s", "min_documents": 20, "min_clusters": 5},
    "look": 2,
    "candidate": "c" * 64,
    "incumbent": "",
    "round": 2,
}


def scores(improvement_bpb=0.2, documents=60):
    source = random.Random(4)
    unit = math.log(2) * 1000
    return [
        DocumentScore(
            id=f"{number:04}",
            cluster=str(number // 3),
            stratum="python_stdlib",
            bytes=1000,
            tokens=300,
            candidate_nats=(2.5 - improvement_bpb + source.gauss(0, 0.02)) * unit,
            incumbent_nats=2.5 * unit,
            byte_nats=2.5 * unit,
            unigram_nats=3.5 * unit,
        )
        for number in range(documents)
    ]


def verdict_of(folder):
    return json.loads((folder / "verdict.json").read_text())


def test_the_worker_joins_the_pieces_and_its_verdict_can_be_reached_again(tmp_path):
    rows = scores()
    write_scores(tmp_path / "0", rows[::2])
    write_scores(tmp_path / "1", rows[1::2])
    inputs = {"scores.0": tmp_path / "0", "scores.1": tmp_path / "1"}
    ends = [run_worker("gate", PARAMS, inputs, tmp_path / name) for name in "ab"]
    end = ends[0]
    assert isinstance(end, TaskFinished)
    assert end == ends[1]
    assert end.summary["verdict"] == "PROMOTE"
    assert end.summary["val_bpb"] == pytest.approx(2.3, abs=0.02)
    assert end.summary["incumbent_bpb"] == pytest.approx(2.5)
    assert end.counts == {"documents": 60, "clusters": 20, "bytes": 60_000}

    first, second = (tmp_path / name / "verdict" for name in "ab")
    assert (first / "verdict.json").read_bytes() == (second / "verdict.json").read_bytes()
    kept = verdict_of(first)
    assert kept["given"]["candidate"] == "c" * 64
    settings = GateSettings(**kept["settings"])
    again = decide(read_scores([first]), settings, kept["given"]["look"])
    assert again.decision == kept["verdict"]["decision"]
    assert again.evidence is not None
    assert again.evidence.p == kept["verdict"]["evidence"]["p"]
    assert again.val_bpb == kept["verdict"]["val_bpb"]


def test_too_few_documents_abstain_and_still_show_the_numbers(tmp_path):
    verdict = decide(scores(documents=12), SETTINGS, 1)
    summary = summary_of(verdict)
    assert summary["verdict"] == "ABSTAIN"
    assert summary["val_bpb"] == pytest.approx(2.3, abs=0.02)
    write_verdict(tmp_path, verdict, SETTINGS, PARAMS)
    assert verdict_of(tmp_path)["verdict"]["evidence"]["mean_improvement_bpb"] > 0.1


def test_a_broken_candidate_is_rejected_in_json_that_anybody_can_read(tmp_path):
    write_scores(tmp_path / "0", scores(improvement_bpb=-math.inf))
    end = run_worker("gate", PARAMS, {"scores.0": tmp_path / "0"}, tmp_path / "out")
    assert isinstance(end, TaskFinished)
    assert end.summary["verdict"] == "REJECT"
    assert end.summary["val_bpb"] == math.inf
    text = (tmp_path / "out" / "verdict" / "verdict.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["verdict"]["val_bpb"] is None
