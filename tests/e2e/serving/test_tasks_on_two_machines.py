"""Tasks of lm-evaluation-harness, asked of a model on the two machines that have trained it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons.cluster import Daemon, all_gone
from tests.support.daemons.training_runs import TwoDaemons, two_daemons, write_letters
from tests.support.warm_program import JUPITERCTL, Program, Streams, start_program
from tests.support.workers.harness_tasks import write_task

pytest.importorskip("lm_eval", reason="tasks of lm-evaluation-harness need the package lm_eval")
pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(600)]

QUESTIONS = 300
SCORED_WITHIN_S = 240.0
ENDS_WITHIN_S = 5.0


def write_questions(folder: Path) -> Path:
    """Write one task of so many questions with two choices each."""
    rows = [
        {"q": f"{n} + {n} =", "options": [str(2 * n), str(2 * n + 1)], "gold": 0}
        for n in range(QUESTIONS)
    ]
    folder.mkdir()
    fields = {"doc_to_text": "{{q}}", "doc_to_choice": "options", "doc_to_target": "gold"}
    write_task(
        folder, "own_sums", "multiple_choice", rows, fields, {"acc": "mean", "acc_norm": "mean"}
    )
    return folder


class Asked:
    """A `model eval` that runs."""

    def __init__(self, daemon: Daemon, tasks: Path, model: str, *options: str) -> None:
        shutil.rmtree(daemon.state_dir / "evaluations", ignore_errors=True)
        self._out, self._err = tasks.with_suffix(".out"), tasks.with_suffix(".err")
        environment = {**os.environ, "HF_HOME": str(tasks.parent / "hub"), "HF_HUB_OFFLINE": "1"}
        command = [JUPITERCTL, "--state-dir", daemon.state_dir, "model", "eval", model]
        arguments = ["--tasks", str(tasks), "--device", "cpu", "-o", "json", *options]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            streams = Streams(subprocess.DEVNULL, out.fileno(), err.fileno())
            self.program: Program = start_program(
                [*command, *arguments], environment, tasks.parent, streams
            )

    @property
    def told(self) -> str:
        return self._err.read_text()

    async def document(self) -> dict[str, Any]:
        status = await asyncio.to_thread(self.program.wait, SCORED_WITHIN_S)
        assert status == 0, self.told
        return json.loads(self._out.read_text())["eval"]


async def until(is_so: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline_s, what
        await asyncio.sleep(0.02)


async def test_the_table_is_one_machine_s_whoever_answers_or_dies(tmp_path: Path) -> None:
    letters, tasks = write_letters(tmp_path), write_questions(tmp_path / "own")
    async with two_daemons(tmp_path) as two:
        trained = await two.train(letters, "--max-steps", "6")
        assert trained.returncode == 0, two.cluster.failure_text(trained.stdout + trained.stderr)
        here, there = two.leader, two.survivor
        name = await trained_model(two)
        began_s = time.monotonic()
        alone = await Asked(here, tasks, name, "--alone").document()
        alone_s = time.monotonic() - began_s
        began_s = time.monotonic()
        both = await Asked(here, tasks, name).document()
        print(f"alone {alone_s:.1f} s, both {time.monotonic() - began_s:.1f} s")
        assert both["scores"] == alone["scores"]
        print(both["models"][0]["answered_by"])

        cut = Asked(here, tasks, name)
        await until(lambda: bool(there.workers()), "the other machine is asked")
        workers = there.workers()
        cut.program.send_signal(signal.SIGINT)
        assert await all_gone(workers, ENDS_WITHIN_S), "the work goes on there"
        assert await asyncio.to_thread(cut.program.wait, ENDS_WITHIN_S) != 0

        orphaned = Asked(here, tasks, name)
        await until(lambda: bool(there.workers()), "the other machine is asked")
        there.kill()
        found = await orphaned.document()
        assert found["scores"] == alone["scores"]
        assert f"{there.name} is asked no more" in orphaned.told
        assert found["models"][0]["answered_by"] == ["this machine"]


async def trained_model(two: TwoDaemons) -> str:
    """Return the model's name, once both machines have it."""
    async with asyncio.timeout(60):
        while True:
            rows = ((await two.leader.ask("models")) or {}).get("models", ())
            if rows and all(each.holds(rows[0]["id"]) for each in two.cluster.daemons):
                return str(rows[0]["name"])
            await asyncio.sleep(0.1)
