"""SmolLM2 behind the endpoint, asked by lm-evaluation-harness's own `local-completions`.

The packages `lm_eval` and `tenacity` aren't among those that `make setup` installs; without them
this is left out. Tasks of choices need log-probabilities of what is asked, which no engine gives.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("lm_eval", reason="local-completions needs the package lm_eval")
pytest.importorskip("tenacity", reason="local-completions needs the package tenacity")

from tests.support.daemons.cluster import Cluster
from tests.support.serving.served_command import served_command
from tests.support.workers.harness_tasks import write_tasks

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(600)]

WRITTEN = "own_capitals"
"""A task whose answers are written, no choices."""


async def test_a_task_of_written_answers_is_scored(
    model: Path, alone: Cluster, tmp_path: Path
) -> None:
    write_tasks(tmp_path / "own")
    async with served_command(alone[0].state_dir, str(model)) as serving:
        asked = f"base_url={serving.url}/completions,model={model.name},tokenizer_backend=None"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args",
            f"{asked},num_concurrent=2", "--include_path", ".", "--tasks", WRITTEN,
            "--output_path", str(tmp_path / "found"), cwd=tmp_path / "own",
            env={**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        assert await process.wait() == 0
        assert (await serving.next_request())["status"] == 200
    (file,) = (tmp_path / "found").rglob("results*.json")
    found = json.loads(file.read_text())["results"][WRITTEN]
    assert 0 <= found["exact_match,none"] <= 1
    print(found)
