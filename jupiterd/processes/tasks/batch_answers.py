"""A worker with a model that answers what tasks of lm-evaluation-harness ask, batch by batch.

Owns one such worker, and its files. Doesn't know who asks, or what the answers mean.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final

from jupiterd.errors import WorkFailedError, from_wire
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import Worker, start_worker
from jupiterd.protocol.frames import BatchWritten, Frame, InputArrived, RunTask, TaskFailed

TASK: Final = "answer_requests"


class BatchAnswers:
    """The answers of one worker."""

    def __init__(self, worker: Worker, scratch: Path) -> None:
        self._worker, self._scratch = worker, scratch
        self._frames: AsyncIterator[Frame] = worker.frames()
        self._numbers = count()

    async def answers(self, lines: str) -> str:
        """Return the lines that answer those of a batch; see `cycle.questions.task_requests`.

        Raises:
            JupiterError: the worker can't load the model, or dies.
        """
        name = f"batch.{next(self._numbers)}"
        file = self._scratch / f"{name}.jsonl"
        file.write_text(lines, encoding="utf-8")
        self._worker.hand_in(InputArrived(name, str(file)))
        return _taken(await self._written(name), file)

    async def _written(self, name: str) -> str:
        async for frame in self._frames:
            if isinstance(frame, TaskFailed):
                raise from_wire(frame.code, frame.message, frame.hint)
            if isinstance(frame, BatchWritten) and frame.name == name:
                return frame.path
        raise WorkFailedError("the worker that answers tasks ended")


def _taken(written: str, asked: Path) -> str:
    """Return what a file holds that nobody needs then, nor what it answers."""
    file = Path(written)
    found = file.read_text(encoding="utf-8")
    for read in (file, asked):
        read.unlink()
    return found


@asynccontextmanager
async def batch_answers(
    model: Path, device: str, scratch: Path, log: Path
) -> AsyncGenerator[BatchAnswers]:
    """Have a worker load a model; it ends with the context.

    model: the folder of its files; device: auto, cpu or cuda; scratch: an empty folder
    """
    params = {"device": device}
    order = RunTask(TASK, params, {"model": str(model)}, str(scratch))
    async with start_worker(order, worker_environment(TASK, params), log) as worker:
        yield BatchAnswers(worker, scratch)
