"""What the demo says and does before there is anything to show."""

import runpy
from pathlib import Path

import pytest

DEMO = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "demo.py"))

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


def test_each_demo_has_a_scope_of_its_own() -> None:
    again = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "demo.py"))
    assert again["SCOPE"] != DEMO["SCOPE"]
