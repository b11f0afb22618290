"""Tasks of lm-evaluation-harness that several workers answer, which are real processes."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from os import kill
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lm_eval", reason="tasks of lm-evaluation-harness need the package lm_eval")

from jupiterd.ctl.model import spread_eval
from jupiterd.ctl.model.eval_worker import written_by
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.model.harness_eval import WRITTEN
from jupiterd.ctl.model.spread_eval import SpreadEval, TaskNode
from jupiterd.cycle.questions.task_scores import SCORING_TASKS, read_task_scores
from jupiterd.processes.tasks.batch_answers import BatchAnswers, batch_answers
from tests.support.workers.harness_tasks import write_tasks
from tests.support.workers.tiny_models import write_model

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


def silent(_done: int, _total: int) -> None:
    """Tell nobody how far it is."""


NAMES = ["own_capitals", "own_prose", "own_sums"]


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


class Turns:
    """Lets each of two machines answer something, however fast the other one is."""

    def __init__(self) -> None:
        self.other_asked, self.home_answered = asyncio.Event(), asyncio.Semaphore(0)


class Watched:
    """A machine that answers first, and may die of it; then it waits for the other one."""

    def __init__(self, opened: BatchAnswers, turns: Turns, *, dies: bool) -> None:
        self._opened, self._turns, self._dies = opened, turns, dies

    async def answers(self, lines: str) -> str:
        if self._dies:
            kill(self._opened._worker.pid, signal.SIGKILL)
        if self._turns.other_asked.is_set():
            for _ in range(2):  # what it answered first may have been answered before
                await self._turns.home_answered.acquire()
        try:
            return await self._opened.answers(lines)
        finally:
            self._turns.other_asked.set()


class Waiting:
    """A machine that answers nothing before another one has."""

    def __init__(self, opened: BatchAnswers, turns: Turns) -> None:
        self._opened, self._turns = opened, turns

    async def answers(self, lines: str) -> str:
        await self._turns.other_asked.wait()
        try:
            return await self._opened.answers(lines)
        finally:
            self._turns.home_answered.release()


@pytest.mark.parametrize("dies", [False, True])
def test_the_table_is_that_of_one_process_even_if_a_machine_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    monkeypatch.setattr("jupiterd.cycle.questions.task_requests.FEWEST_REQUESTS", 2)
    folder = write_tasks(tmp_path / "own")
    model = EvaluatedModel("m", "a" * 64, write_model(tmp_path / "tiny", "llama"))
    inputs = {"tasks": folder}
    params = {"names": NAMES, "started_in": str(tmp_path)}
    alone = written_by(
        SCORING_TASKS,
        {**params, "device": "cpu"},
        {"model": model.folder, **inputs},
        WRITTEN,
        silent,
    )
    turns = Turns()

    @asynccontextmanager
    async def other(*_: object) -> AsyncGenerator[Watched]:
        scratch = tmp_path / "other"
        scratch.mkdir()
        async with batch_answers(model.folder, "cpu", scratch, tmp_path / "log") as opened:
            yield Watched(opened, turns, dies=dies)

    @asynccontextmanager
    async def here(*said: Any) -> AsyncGenerator[Waiting]:
        async with batch_answers(*said) as opened:
            yield Waiting(opened, turns)

    monkeypatch.setattr(spread_eval, "remote_answers", other)
    monkeypatch.setattr("jupiterd.processes.tasks.batch_answers.batch_answers", here)
    told: list[tuple[int, int]] = []
    lost: list[str] = []
    spread = SpreadEval(tmp_path, model, [TaskNode("b" * 64, "other")], "cpu")
    text, by = spread.written(
        params, inputs, WRITTEN, lambda done, total: told.append((done, total)), lost.append
    )
    assert read_task_scores(text) == read_task_scores(alone)
    assert text == alone
    assert told[-1] == (2 + 5 + 3 * 8, 2 + 5 + 3 * 8)
    assert by == (["this machine"] if dies else ["other", "this machine"])
    assert [line.partition(":")[0] for line in lost] == ["other is asked no more"] * dies
