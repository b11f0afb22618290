"""Has models of this machine answer people's own questions, in a worker process each.

Owns starting the worker and reading its grades. Doesn't know which models there are, or what is
shown of the grades (`eval_lines`).
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jupiterd.cycle.questions.grades import GRADES_FILE, Grade, read_grades
from jupiterd.cycle.questions.question_file import DomainQuestion, read_questions
from jupiterd.errors import NotFoundError, from_wire
from jupiterd.path_text import path_text
from jupiterd.protocol.frames import Progressed, RunTask, TaskFailed

TASK = "grade_questions"

OnProgress = Callable[[int, int], None]
"""Told how many questions are answered, of how many."""


@dataclass(frozen=True)
class GradedModel:
    """A model with what came of each question, in their order."""

    name: str
    artifact: str
    """Its id; empty where it is a folder of this machine."""
    grades: tuple[Grade, ...]


def questions_in(file: Path) -> list[DomainQuestion]:
    """Return the questions of a file.

    Raises:
        NotFoundError: it can't be read.
        UsageError: a line of it is no question.
    """
    try:
        return read_questions(file.read_text(encoding="utf-8"), path_text(file.name))
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"{path_text(file)} can't be read", "name a file of JSON lines"
        ) from error


def grades_of(folder: Path, questions: Path, device: str, told: OnProgress) -> list[Grade]:
    """Return a model's grades.

    Raises:
        JupiterError: the worker can't load the model, or ends without a result.
    """
    engine = "torch" if find_spec("torch") else "mlx"
    params: Mapping[str, Any] = {"engine": engine, "device": device}
    with tempfile.TemporaryDirectory(prefix="jupiter-eval-", ignore_cleanup_errors=True) as scratch:
        inputs = {"model": str(folder), "questions": str(questions.resolve())}
        order = RunTask(TASK, params, inputs, scratch)
        asyncio.run(_done(order, Path(scratch), told))
        return read_grades((Path(scratch) / "grades" / GRADES_FILE).read_text(encoding="utf-8"))


async def _done(order: RunTask, scratch: Path, told: OnProgress) -> None:
    # Processes import psutil, which no command but this one needs.
    from jupiterd.processes.environment import worker_environment
    from jupiterd.processes.process import start_worker

    environment = worker_environment(TASK, order.params)
    async with start_worker(order, environment, scratch / "worker.log") as worker:
        async for frame in worker.frames():
            if isinstance(frame, Progressed):
                told(frame.done, frame.total)
            elif isinstance(frame, TaskFailed):
                raise from_wire(frame.code, frame.message, frame.hint)
