"""`jupiterctl gate run` and `jupiterctl cycle explain`, on verdicts that the gate has written."""

import json
import random
import shutil
from pathlib import Path

import pytest

from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.proxy import Taught
from jupiterd.cycle.gate.record import Material
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.workers.evaluate.gate_verdict import write_verdict
from tests.bench.cycle.drawn_judges import COIN, GOOD, Answers
from tests.support.cycle.gate_material import documents, gaps, students

GIVEN = {
    "gate": {"alpha": 0.05, "margin_bpb": 0.005, "stratum_veto_bpb": 0.02},
    "holdout": {"min_documents": 20, "min_clusters": 5},
    "look": 2,
    "round": 2,
    "candidate": "c" * 64,
    "incumbent": "a" * 64,
    "generator": "",
    "scores": {},
}
WORKS = Sanity(loads=True, seed=7, completions=8, looping=1, code=8, parsed=6, generator_parsed=5)


def judged(folder, saved_bpb=0.05, count=90):
    scores = documents(random.Random(3), saved_bpb, count=count, noise_bpb=0.03)
    write_verdict(folder, Material(scores, Findings(WORKS, gaps(22, 20, 350))), GIVEN)
    return folder


def taught(folder):
    """Return the verdict on a candidate whose text harms, in a round whose own text helped."""
    runs = students(
        candidate=(2.61, 2.64), incumbent=(2.52, 2.54), mix=(2.4, 2.42), real=(2.5, 2.51)
    )
    scores = documents(random.Random(3), 0.05, count=90, noise_bpb=0.03)
    findings = Findings(WORKS, gaps(22, 20, 350), Taught(runs))
    share = "30.0% to begin with: no round's control has decided yet"
    write_verdict(folder, Material(scores, findings), GIVEN | {"synthetic_share": share})
    return folder


def heard(folder, judge=GOOD, win_chance=0.8):
    """Return the verdict on a candidate whose bits per byte tie, with what a judge said of it."""
    source = random.Random(5)
    scores = documents(source, 0.003, count=90, noise_bpb=0.005)
    judged = Answers(win_chance=win_chance, cluster_spread=0.1).judged(source, judge)
    findings = Findings(WORKS, gaps(22, 20, 350), judged=judged)
    given = GIVEN | {"judge": {"name": "oak", "id": "http://box/v1#oak"}}
    write_verdict(folder, Material(scores, findings), given)
    return folder


def known_to(daemon, folder, *material):
    daemon.documents["verdict"] = {
        "schema": "jupiter/v1",
        "verdict": {
            "folder": str(folder),
            "material": [str(each) for each in material or (folder,)],
        },
    }


def test_a_verdict_in_a_folder_is_decided_again_without_a_daemon(ctl, tmp_path):
    folder = judged(tmp_path / "verdict")
    ran = ctl("gate", "run", "--from", str(folder))
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.startswith("round 2: PROMOTE, the same as recorded, to the last byte\n")
    assert "G3 does its text teach small students as much? not run" in ran.out
    assert "is it at least as good as counting alone?" in ran.out
    assert "the generator?" not in ran.out


def test_a_verdict_that_an_earlier_version_wrote_is_explained_and_decided_again(
    daemon, ctl, golden, tmp_path
):
    """The file is one that the program wrote when verdicts had form v2."""
    folder = judged(tmp_path / "verdict")
    shutil.copy(Path(__file__).parents[1] / "golden" / "verdict_v2.json", folder / "verdict.json")
    ran = ctl("gate", "run", "--from", str(folder))
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.startswith("round 2: PROMOTE, the same as recorded, to the last byte\n")
    known_to(daemon, folder)
    golden("cycle_explain_v2.txt", ctl("cycle", "explain").out)


ANSWERS = {
    "trouble": None,
    "models": {"base": "b" * 64, "incumbent": "a" * 64, "candidate": "c" * 64},
    "rows": [
        {"prompt": f"def f{n}(\x1b[2J", "is_question": False, "base": "x", "incumbent": "y",
         "candidate": f"answer {n}"}
        for n in range(3)
    ],
}  # fmt: skip


def test_an_explanation_ends_with_what_the_models_write_in_columns(
    daemon, ctl, tmp_path, monkeypatch
):
    known_to(daemon, judged(tmp_path / "verdict"))
    before = ctl("cycle", "explain").out
    daemon.documents["verdict"]["verdict"]["answers"] = ANSWERS
    monkeypatch.setenv("COLUMNS", "100")
    ran = ctl("cycle", "explain")
    assert ran.out.startswith(before)
    assert "> def f1(?[2J\nbase (bbbbbbbb)" in ran.out
    assert "answer 1" in ran.out
    assert "answer 2" not in ran.out
    heads = [line for line in ran.out.splitlines() if line.startswith("base (")]
    assert heads[0].split() == [
        "base", "(bbbbbbbb)", "incumbent", "(aaaaaaaa)", "candidate", "(cccccccc)",
    ]  # fmt: skip
    monkeypatch.setenv("COLUMNS", "40")
    assert "\nbase (bbbbbbbb)\nx\nincumbent (aaaaaaaa)\ny\n" in ctl("cycle", "explain").out
    found = json.loads(ctl("cycle", "explain", "-o", "json").out)
    assert (found["answers"], found["own_questions"]) == (ANSWERS, None)


def test_the_daemon_says_where_the_scores_lie(daemon, ctl, tmp_path):
    folder = judged(tmp_path / "verdict")
    pieces = shutil.copytree(folder, tmp_path / "pieces")
    known_to(daemon, folder, pieces)
    ran = ctl("gate", "run", "--candidate", "2", "--incumbent", "1", "-o", "json")
    assert ran.exit_code == 0
    found = json.loads(ran.out)["gate"]
    assert (found["verdict"], found["recorded"], found["is_same"]) == ("PROMOTE", "PROMOTE", True)
    assert found["numbers"]["evidence"]["p"] < found["numbers"]["alpha_spent"]


def test_scores_that_say_something_else_by_now_are_told_and_fail(daemon, ctl, tmp_path):
    folder = judged(tmp_path / "verdict")
    known_to(daemon, folder, judged(tmp_path / "other", saved_bpb=0.0))
    ran = ctl("gate", "run")
    assert ran.exit_code == 8
    assert "NOT the same as recorded, which was PROMOTE" in ran.out
    assert "HOLD instead of PROMOTE" in ran.err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "verdict.json").unlink(), "can't be read"),
        (lambda folder: (folder / "verdict.json").write_text("{}"), "this is no verdict of form"),
        (lambda folder: (folder / "scores.jsonl").unlink(), "has no scores.jsonl"),
        (lambda folder: (folder / "scores.jsonl").write_text("{}\n"), "is no score"),
        (lambda folder: (folder / "cloze.jsonl").write_text("x\n"), "is no JSON"),
    ],
)
def test_a_folder_that_is_no_verdict_is_told_in_one_line(ctl, tmp_path, damage, message):
    folder = judged(tmp_path / "verdict")
    damage(folder)
    ran = ctl("gate", "run", "--from", str(folder))
    assert ran.exit_code in {1, 6}
    first, _, hint = ran.err.splitlines()
    assert message in first
    assert hint.startswith("hint: ")


def test_a_folder_and_a_model_exclude_each_other(ctl, tmp_path):
    assert ctl("gate", "run", "--from", str(tmp_path), "--candidate", "1").exit_code == 2


def test_a_newcomer_can_read_what_small_students_have_shown(daemon, ctl, golden, tmp_path):
    known_to(daemon, taught(tmp_path / "verdict"))
    golden("cycle_explain_taught.txt", ctl("cycle", "explain").out)
    again = ctl("gate", "run", "-o", "json")
    assert again.exit_code == 0, again.err
    found = json.loads(again.out)["gate"]
    assert (found["is_same"], found["verdict"]) == (True, "HOLD")
    assert found["numbers"]["control"]["gain_bpb"] == 0.095


@pytest.mark.parametrize(
    ("name", "judge", "decision"), [("preferred", GOOD, "PROMOTE"), ("bad_judge", COIN, "HOLD")]
)
def test_a_newcomer_can_read_what_a_judge_was_worth_and_said(
    daemon, ctl, golden, tmp_path, name, judge, decision
):
    folder = heard(tmp_path / "verdict", judge)
    known_to(daemon, folder)
    golden(f"cycle_explain_{name}.txt", ctl("cycle", "explain").out)
    again = ctl("gate", "run", "-o", "json")
    assert again.exit_code == 0, again.err
    found = json.loads(again.out)["gate"]
    assert (found["is_same"], found["verdict"]) == (True, decision)
    other = (folder / "pairs.jsonl").read_text().replace('["1", "2"]', '["2", "1"]')
    (folder / "pairs.jsonl").write_text(other)
    assert ctl("gate", "run").exit_code == 8


@pytest.mark.parametrize(
    ("name", "saved_bpb", "count"),
    [("promote", 0.05, 90), ("hold", 0.006, 90), ("abstain", 0.01, 12)],
)
def test_a_newcomer_can_read_why(daemon, ctl, golden, tmp_path, name, saved_bpb, count):
    known_to(daemon, judged(tmp_path / "verdict", saved_bpb, count))
    ran = ctl("cycle", "explain")
    assert (ran.exit_code, ran.err) == (0, "")
    golden(f"cycle_explain_{name}.txt", ran.out)


def test_of_a_domain_without_templates_nobody_is_said_to_write(daemon, ctl, tmp_path):
    folder = tmp_path / "verdict"
    scores = documents(random.Random(3), 0.05, count=90, noise_bpb=0.03)
    write_verdict(folder, Material(scores, Findings(WORKS)), GIVEN | {"templates": []})
    known_to(daemon, folder)
    first = ctl("cycle", "explain").out.splitlines()[0]
    assert "PROMOTE" in first
    assert "nothing is generated, for the domain has no templates" in first


def test_a_round_is_asked_for_by_its_number_and_scripts_get_the_whole_verdict(
    daemon, ctl, tmp_path
):
    known_to(daemon, judged(tmp_path / "verdict"))
    ran = ctl("cycle", "explain", "2", "-o", "json")
    assert ran.exit_code == 0
    document = json.loads(ran.out)
    assert document["given"]["round"] == 2
    assert list(document["verdict"]["questions"]) == ["G0", "G1", "G2", "G3"]
