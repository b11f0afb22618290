"""Has a worker process of this machine do one task of an evaluation.

Owns starting it, and its scratch folder. Doesn't know what the tasks are.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jupiterd.errors import from_wire
from jupiterd.protocol.frames import Progressed, RunTask, TaskFailed

OnProgress = Callable[[int, int], None]
"""Told how much is done, of how much."""


def written_by(
    task: str, params: Mapping[str, Any], inputs: Mapping[str, Path], file: str, told: OnProgress
) -> str:
    """Return the text of a file that a worker writes, such as `grades/grades.jsonl`.

    Raises:
        JupiterError: the worker can't do the task, or ends without a result.
    """
    with tempfile.TemporaryDirectory(prefix="jupiter-eval-", ignore_cleanup_errors=True) as scratch:
        paths = {name: str(path.resolve()) for name, path in inputs.items()}
        order = RunTask(task, params, paths, scratch)
        asyncio.run(_done(order, Path(scratch), told))
        return (Path(scratch) / file).read_text(encoding="utf-8")


async def _done(order: RunTask, scratch: Path, told: OnProgress) -> None:
    # Processes import psutil, which no command but this one needs.
    from jupiterd.processes.environment import worker_environment
    from jupiterd.processes.process import start_worker

    environment = worker_environment(order.task, order.params)
    async with start_worker(order, environment, scratch / "worker.log") as worker:
        async for frame in worker.frames():
            if isinstance(frame, Progressed):
                told(frame.done, frame.total)
            elif isinstance(frame, TaskFailed):
                raise from_wire(frame.code, frame.message, frame.hint)
