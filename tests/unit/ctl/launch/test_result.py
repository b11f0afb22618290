"""What programs are told of a launch, with -o json."""

import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def test_each_rank_is_told_with_its_status_and_the_ranks_print_aside(ctl, project: Path):
    (project / "train.py").write_text("import os; print('hello from', os.environ['RANK'])")
    ran = ctl("-o", "json", "launch", "--per-node", "2", "--engine", "mlx", "--", "train.py")
    told = json.loads(ran.out)
    assert "hello from 0" in ran.err
    assert (told["schema"], told["launch"]["status"], told["launch"]["reason"]) == (
        "jupiter/v1", 0, None,
    )  # fmt: skip
    assert [(r["rank"], r["name"], r["status"]) for r in told["launch"]["ranks"]] == [
        (0, "this machine", 0),
        (1, "this machine", 0),
    ]
    assert all(0 < row["seconds"] <= told["launch"]["seconds"] for row in told["launch"]["ranks"])
    assert told["launch"]["engine"] == "mlx"
    assert told["launch"]["folder"] == str(project.resolve())


def test_what_failed_is_told_by_its_rank_and_its_signal(ctl, project: Path):
    program = "import os, time; os.environ['RANK'] == '1' and os.abort(); time.sleep(300)"
    asked = ("--per-node", "2", "--engine", "mlx", "--", sys.executable, "-c", program)
    ran = ctl("-o", "json", "launch", *asked)
    told = json.loads(ran.out)["launch"]
    assert (ran.exit_code, told["status"]) == (134, 134)
    assert told["reason"] == "rank 1 was killed by SIGABRT"
    assert [row["signal"] for row in told["ranks"]] == ["SIGTERM", "SIGABRT"]


def test_a_launch_that_never_began_prints_no_document(ctl, project: Path):
    ran = ctl("-o", "json", "launch", "--", "no-such-program")
    assert (ran.exit_code, ran.out) == (6, "")
