import json
import math
import random
from dataclasses import replace

import pytest

from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.proxy import Taught
from jupiterd.cycle.gate.record import (
    Material,
    decide_on,
    pair_lines,
    proxy_lines,
    read_verdict,
)
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import DocumentScore
from jupiterd.cycle.judge.pair import Pair
from jupiterd.errors import CorruptArtifactError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.gate_verdict import JUDGED_AT, summary_of, write_verdict
from jupiterd.workers.evaluate.score_file import (
    read_folders,
    write_sanity,
    write_scores,
    write_text,
)
from tests.support.cycle.gate_material import gaps, students
from tests.support.workers.data_material import run_worker

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
            generator_nats=2.4 * unit,
            byte_nats=2.5 * unit,
            unigram_nats=3.5 * unit,
        )
        for number in range(documents)
    ]


def verdict_of(folder):
    return json.loads((folder / "verdict.json").read_text())


def test_where_nothing_is_held_out_the_verdict_is_that_there_is_none(tmp_path):
    for piece in ("0", "1"):
        write_scores(tmp_path / piece, [])
    inputs = {"scores.0": tmp_path / "0", "scores.1": tmp_path / "1"}
    end = run_worker("gate", PARAMS, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished), end
    assert end.summary["verdict"] == "ABSTAIN"
    assert end.summary["reason"] == "0 held-out documents are below the 20 asked for"


def test_the_worker_joins_the_pieces_and_its_verdict_can_be_reached_again(tmp_path):
    rows, filled = scores(), gaps(5, 3, 40)
    write_scores(tmp_path / "0", rows[::2], filled[:20])
    write_sanity(tmp_path / "0", Sanity(loads=True, completions=8, looping=1, seed=7))
    write_scores(tmp_path / "1", rows[1::2], filled[20:])
    inputs = {"scores.0": tmp_path / "0", "scores.1": tmp_path / "1"}
    ends = [run_worker("gate", PARAMS, inputs, tmp_path / name) for name in "ab"]
    end = ends[0]
    assert isinstance(end, TaskFinished)
    told = [{n: v for n, v in each.summary.items() if n != JUDGED_AT} for each in ends]
    assert (end.counts, told[0]) == (ends[1].counts, told[1])
    assert end.summary["verdict"] == "PROMOTE"
    assert end.summary["better"] is True
    assert end.summary["val_bpb"] == pytest.approx(2.3, abs=0.02)
    assert end.summary["incumbent_bpb"] == pytest.approx(2.5)
    assert end.summary["generator_bpb"] == pytest.approx(2.4)
    assert end.counts == {"documents": 60, "clusters": 20, "bytes": 60_000}

    first, second = (tmp_path / name / "verdict" for name in "ab")
    kept = (first / "verdict.json").read_text()
    assert (second / "verdict.json").read_text() == kept
    document = read_verdict(kept)
    assert document["given"]["candidate"] == "c" * 64
    assert document["verdict"]["cloze"]["candidate_right"] == 45
    assert document["verdict"]["sanity"]["looping"] == 1
    assert document["verdict"]["teaching"] is None
    _, again = decide_on(read_folders([first]), document["given"])
    assert again == kept


def test_what_small_students_learned_is_kept_with_the_verdict(tmp_path):
    runs = students(candidate=(2.0, 2.1), incumbent=(2.1, 2.2), mix=(2.0, 2.1), real=(2.1, 2.0))
    write_scores(tmp_path / "scores", scores())
    for number, each in enumerate(runs):
        write_text(tmp_path / f"{number}" / "proxies.jsonl", proxy_lines([each]))
    inputs = {f"proxies.{number}": tmp_path / f"{number}" for number in range(len(runs))}
    inputs |= {"scores.0": tmp_path / "scores"}
    end = run_worker("gate", PARAMS, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished)
    assert end.summary["teaching_gain_bpb"] == pytest.approx(0.1)
    assert end.summary["control_gain_bpb"] == pytest.approx(0.0)
    folder = tmp_path / "out" / "verdict"
    found = read_folders([folder])
    assert list(found.findings.taught.runs) == sorted(runs, key=lambda run: (run.arm, run.seed))
    assert decide_on(found, PARAMS)[1] == (folder / "verdict.json").read_text()
    told = verdict_of(folder)["verdict"]
    assert told["teaching"]["ours_bpb"] == [2.0, 2.1]
    assert told["proxies"][0]["shards"] == "candidate".ljust(64, "0")


def test_a_small_student_counts_once(tmp_path):
    for name in "ab":
        text = proxy_lines(students(mix=(2.0,)))
        write_text(tmp_path / name / "proxies.jsonl", text)
    with pytest.raises(CorruptArtifactError, match="was trained in two pieces"):
        read_folders([tmp_path / "a", tmp_path / "b"])


def test_what_the_gate_is_told_of_small_students_there_are_not_is_in_the_verdict(tmp_path):
    given = PARAMS | {"teaching": {"why_not": "not needed: there are no templates"}}
    verdict = write_verdict(tmp_path, Material(scores(), Findings(taught=Taught())), given)
    assert verdict.questions["G3"].reason == "not needed: there are no templates"
    assert decide_on(read_folders([tmp_path]), given)[1] == (tmp_path / "verdict.json").read_text()


def test_the_form_of_a_verdict_is_the_one_before_where_no_judge_is_named(tmp_path):
    write_verdict(tmp_path / "without", Material(scores(), Findings()), PARAMS)
    write_verdict(tmp_path / "with", Material(scores(), Findings()), PARAMS | JUDGED)
    without, named = (json.loads((tmp_path / n / "verdict.json").read_text()) for n in FOLDERS)
    assert (without["schema"], named["schema"]) == ("jupiter/verdict/v3", "jupiter/verdict/v4")
    assert named["verdict"].keys() - without["verdict"].keys() == {"tie_break"}
    assert list(named["verdict"]["questions"]) == ["G0", "G1", "G2", "G3", "tie-break"]
    assert not (tmp_path / "without" / "pairs.jsonl").exists()


FOLDERS = ("without", "with")
JUDGED = {"judge": {"name": "oak", "id": "http://box/v1#oak"}}


def test_what_a_judge_said_is_kept_with_the_verdict_and_no_pair_counts_twice(tmp_path):
    pair = Pair("students", "d", "c", "b", "o", "t", ("1", "2"))
    other = replace(pair, kind="foreign")
    for name, each in (("a", pair), ("b", other)):
        write_text(tmp_path / name / "pairs.jsonl", pair_lines([each]))
    found = read_folders([tmp_path / "a", tmp_path / "b"])
    assert set(found.findings.judged.pairs) == {pair, other}
    with pytest.raises(CorruptArtifactError, match="was asked about in two pieces"):
        read_folders([tmp_path / "a", tmp_path / "a"])
    write_scores(tmp_path / "scores", scores())
    inputs = {"scores.0": tmp_path / "scores", "judge": tmp_path / "a"}
    end = run_worker("gate", PARAMS | JUDGED, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished)
    assert end.summary["tied"] is False
    folder = tmp_path / "out" / "verdict"
    assert (folder / "pairs.jsonl").read_text() == (tmp_path / "a" / "pairs.jsonl").read_text()


def test_too_few_documents_abstain_and_still_show_the_numbers(tmp_path):
    verdict = write_verdict(tmp_path, Material(scores(documents=12), Findings()), PARAMS)
    summary = summary_of(verdict)
    assert summary["verdict"] == "ABSTAIN"
    assert summary["val_bpb"] == pytest.approx(2.3, abs=0.02)
    assert verdict_of(tmp_path)["verdict"]["evidence"]["mean_improvement_bpb"] > 0.1


def test_a_verdict_of_an_earlier_form_is_not_decided_again():
    with pytest.raises(CorruptArtifactError, match="v3, but of jupiter/verdict/v1"):
        read_verdict('{"schema": "jupiter/verdict/v1"}')


def test_a_broken_candidate_is_rejected_in_json_that_anybody_can_read(tmp_path):
    write_scores(tmp_path / "0", scores(improvement_bpb=-math.inf))
    end = run_worker("gate", PARAMS, {"scores.0": tmp_path / "0"}, tmp_path / "out")
    assert isinstance(end, TaskFinished)
    assert end.summary["verdict"] == "REJECT"
    assert end.summary["val_bpb"] == math.inf
    text = (tmp_path / "out" / "verdict" / "verdict.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["verdict"]["val_bpb"] is None
