"""Scores a model in tasks, asked on all machines that have it.

Owns which machines those are, and the worker in which the harness runs: on this machine alone, so
that tasks, their data and their Python stay here, and its table is the one of a single machine.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jupiterd.client.channel import ControlChannel
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.model.remote_answers import remote_answers
from jupiterd.ctl.model.spread_answers import HOME, OpensModel, SpreadAnswers, Told
from jupiterd.cycle.questions.task_requests import TaskRequest, answers_text, read_requests
from jupiterd.cycle.questions.task_scores import SCORING_TASKS
from jupiterd.errors import JupiterError, from_wire
from jupiterd.protocol.frames import BatchWritten, InputArrived, RunTask, TaskFailed


@dataclass(frozen=True)
class TaskNode:
    """Another machine that has the model."""

    node: str
    name: str
    why_not: str = ""
    """Why it isn't asked; empty where it is."""


def task_nodes(state_dir: Path, model: EvaluatedModel) -> list[TaskNode]:
    """Return the other machines that have the model; none where no daemon knows any."""
    from jupiterd.ctl.calls import ask_over_grpc

    if not model.artifact:
        return []
    with suppress(JupiterError):
        rows = ask_over_grpc(state_dir, f"task_nodes/{model.artifact}")["nodes"]
        having = [row for row in rows if row["has_model"]]
        return [TaskNode(row["node"], row["name"], row["why_not"]) for row in having]
    return []


def asked_line(model: EvaluatedModel, nodes: Sequence[TaskNode]) -> str:
    """Return what people are told of the machines; empty where there are no others."""
    asked = [each.name for each in nodes if not each.why_not]
    others = [f"{each.name} {each.why_not}" for each in nodes if each.why_not]
    said = f"{model.name} is asked on {', '.join([HOME, *asked])}"
    return f"{said}; not asked: {', '.join(others)}" if others else said if asked else ""


@dataclass(frozen=True)
class SpreadEval:
    """One model that is asked on several machines."""

    state_dir: Path
    model: EvaluatedModel
    nodes: Sequence[TaskNode]
    device: str

    def written(
        self,
        params: Mapping[str, Any],
        inputs: Mapping[str, Path],
        file: str,
        told: Told,
        lost: Callable[[str], None],
    ) -> tuple[str, list[str]]:
        """Return the text of a file that the harness's worker writes, and who answered.

        Raises:
            JupiterError: no machine can answer, or the harness fails.
        """
        with tempfile.TemporaryDirectory(
            prefix="jupiter-eval-", ignore_cleanup_errors=True
        ) as scratch:
            folder = Path(scratch)
            paths = {name: str(path.resolve()) for name, path in inputs.items()}
            order = RunTask(SCORING_TASKS, params, paths, str(folder / "harness"))
            answered_by = asyncio.run(self._done(order, folder, told, lost))
            return (folder / "harness" / file).read_text(encoding="utf-8"), answered_by

    async def _done(
        self, order: RunTask, folder: Path, told: Told, lost: Callable[[str], None]
    ) -> list[str]:
        async with ControlChannel(self.state_dir) as channel:
            spread = SpreadAnswers(self._models(channel, folder), told, lost)
            async with spread.opened():
                await _run_harness(order, folder, spread)
        return sorted(spread.answered_by)

    def _models(self, channel: ControlChannel, folder: Path) -> dict[str, OpensModel]:
        # Processes import psutil, which few commands need.
        from jupiterd.processes.tasks.batch_answers import batch_answers

        home = folder / "home"
        home.mkdir()
        log = folder / "home.log"
        models: dict[str, OpensModel] = {
            HOME: partial(batch_answers, self.model.folder, self.device, home, log)
        }
        for each in self.nodes:
            name = each.name if each.name not in models else f"{each.name} ({each.node[:8]})"
            models[name] = partial(
                remote_answers, channel, each.node, self.model.artifact, self.device
            )
        return models


async def _run_harness(order: RunTask, folder: Path, spread: SpreadAnswers) -> None:
    from jupiterd.processes.environment import worker_environment
    from jupiterd.processes.process import start_worker

    environment = worker_environment(order.task, order.params)
    async with start_worker(order, environment, folder / "harness.log") as worker:
        async for frame in worker.frames():
            if isinstance(frame, TaskFailed):
                raise from_wire(frame.code, frame.message, frame.hint)
            if isinstance(frame, BatchWritten):
                answers = answers_text(await spread.answers(_requests_in(frame.path)))
                file = _written(folder / f"{frame.name}.answers.jsonl", answers)
                worker.hand_in(InputArrived(frame.name, file))


def _requests_in(path: str) -> list[TaskRequest]:
    return read_requests(Path(path).read_text(encoding="utf-8"))


def _written(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    return str(file)
