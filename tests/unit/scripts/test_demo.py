"""What the demo says and does before there is anything to show."""

import os
import runpy
import sys
from pathlib import Path

import pytest

from tests.docs.command_lines import commands_in, trouble

DEMO = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "demo.py"))

WAITING = {
    "node": {"id": "a1" * 16, "name": "node-1"},
    "cluster": {"id": "c1" * 16, "name": None, "leader": None, "nodes_alive": 1, "nodes_total": 1},
    "nodes": [],
    "health": [
        {
            "code": "pending-node",
            "severity": "warning",
            "title": "this node waits to be let in: attic is closed",
            "hint": "run on any member: jupiterctl cluster open",
        }
    ],
}


def test_daemons_that_form_no_cluster_are_shown_with_what_each_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    DEMO["print_trouble"]({"node-1": WAITING, "node-2": None})
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "node-1:"
    assert (
        "  health   warning: this node waits to be let in: attic is closed (pending-node)" in told
    )
    assert told[-2:] == ["node-2:", "  no answer"]


def test_what_the_last_demo_left_is_kept_under_another_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clear_stage = DEMO["clear_stage"]
    stage, before = tmp_path / ".demo", tmp_path / ".demo-before"
    clear_stage.__globals__.update(STAGE=stage, BEFORE=before)
    clear_stage()
    assert capsys.readouterr().out == ""
    for model in ("first", "second"):
        (stage / "model").write_text(model)
        clear_stage()
        assert list(stage.iterdir()) == []
        assert (before / "model").read_text() == model
        assert capsys.readouterr().out.count(".demo-before/") == 1


def test_an_end_on_the_way_says_what_is_left(tmp_path: Path) -> None:
    has_model, last_line = DEMO["has_model"], DEMO["last_line"]
    has_model.__globals__.update(STAGE=tmp_path)
    told = last_line(is_interrupted=True, has_model=has_model())
    assert "the cycle ended with them" in told
    assert "no model was made yet" in told
    model = tmp_path / "node-2" / "runs" / "c0ffee" / "1"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(b"")
    assert last_line(is_interrupted=False, has_model=has_model()) == (
        "all daemons are stopped; logs and the model stay in .demo/"
    )


def test_the_lines_that_start_a_conversation_are_commands_that_their_programs_know() -> None:
    lines = DEMO["conversation_lines"]()[1:]
    commands = [words for line in lines for words in commands_in(line.replace(".venv/bin/", ""))]
    assert [words[0] for words in commands] == ["jupiterd", "jupiterctl"]
    assert [told for words in commands if (told := trouble(words))] == []


def test_ctrl_c_is_for_the_demo_and_not_for_what_it_has_begun(tmp_path: Path) -> None:
    program = tmp_path / "told"
    says = "import os\nraise SystemExit(os.getpgrp() == os.getpid())\n"
    program.write_text(f"#!{sys.executable}\n{says}")
    program.chmod(0o755)
    carried_out = DEMO["carried_out"]
    carried_out.__globals__.update(BIN=tmp_path)
    assert carried_out(["told"]) == 1


def test_what_the_demo_begins_waits_for_no_answer(tmp_path: Path) -> None:
    program = tmp_path / "asks"
    program.write_text(f"#!{sys.executable}\nimport sys\nraise SystemExit(len(sys.stdin.read()))\n")
    program.chmod(0o755)
    carried_out = DEMO["carried_out"]
    carried_out.__globals__.update(BIN=tmp_path)
    kept, (answer, typed) = os.dup(0), os.pipe()
    os.write(typed, b"yes\n")
    os.close(typed)
    try:
        os.dup2(answer, 0)
        assert carried_out(["asks"]) == 0
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(answer)


def test_each_demo_has_a_scope_of_its_own() -> None:
    again = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "demo.py"))
    assert again["SCOPE"] != DEMO["SCOPE"]
