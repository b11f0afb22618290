"""SmolLM2 in tasks of lm-evaluation-harness: through jupiterctl, and by the harness's own command.

The package `lm_eval` isn't among those that `make setup` installs; without it this is left out.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval", reason="tasks of lm-evaluation-harness need the package lm_eval")

from tests.support.workers.harness_tasks import write_tasks

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

NAMES = "own_capitals,own_prose,own_sums"


def ran(at: Path, *arguments: str) -> str:
    environment = {**os.environ, "HF_HOME": str(at / "hub"), "HF_HUB_OFFLINE": "1"}
    environment["JUPITER_STATE_DIR"] = str(at / "state")
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


def by_jupiter(at: Path, model: Path) -> dict[str, Any]:
    start = "import sys; from jupiterd.programs import jupiterctl; sys.exit(jupiterctl())"
    said = ran(at, "-c", start, "model", "eval", str(model), "--tasks", "own", "--device", "cpu",
               "-o", "json")  # fmt: skip
    return json.loads(said)["eval"]


def by_the_harness(at: Path, model: Path) -> dict[str, dict[str, Any]]:
    ran(at / "own", "-m", "lm_eval", "--model", "hf", "--model_args",
        f"pretrained={model},dtype=float32", "--device", "cpu", "--include_path", ".", "--tasks",
        NAMES, "--output_path", str(at / "theirs"))  # fmt: skip
    (file,) = (at / "theirs").rglob("results*.json")
    return json.loads(file.read_text())["results"]


def test_the_figures_are_those_of_the_harnesss_own_command(model: Path, tmp_path: Path) -> None:
    write_tasks(tmp_path / "own")
    (tmp_path / "state").mkdir()
    theirs = by_the_harness(tmp_path, model)
    ours = by_jupiter(tmp_path, model)
    assert len(ours["scores"]) == 5
    for row in ours["scores"]:
        found, (value,) = theirs[row["task"]], row["values"]
        assert value["value"] == found[f"{row['metric']},{row['filter']}"]
        error = found[f"{row['metric']}_stderr,{row['filter']}"]
        assert value["standard_error"] == (None if error == "N/A" else error)
        print(f"{row['task']} {row['metric']}: {value['value']:.6f}, both")
    again = by_jupiter(tmp_path, model)
    assert (ours["models"][0]["computed_tasks"], again["models"][0]["computed_tasks"]) == (3, 0)
    assert again["scores"] == ours["scores"]
