"""A model of lm-evaluation-harness that others answer for: whoever runs this worker has it asked.

Owns handing the harness's requests out and the answers in. So the harness does everything but
asking here, and comes to the same table as with a model of its own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from lm_eval.api.model import LM  # pyright: ignore[reportMissingImports]

from jupiterd.cycle.questions.task_requests import (
    CONTINUED,
    WHOLE,
    WRITTEN,
    TaskRequest,
    read_answers,
    requests_text,
)
from jupiterd.errors import WorkFailedError
from jupiterd.protocol.frames import BatchWritten
from jupiterd.workers.link import Task

LOOK_S: Final = 1.0


class AskingModel(LM):  # pyright: ignore[reportUntypedBaseClass]
    """The models of all machines that have it."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task
        self._asked = 0

    def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
        """Return how likely texts go on as they do."""
        return self._answers([TaskRequest(CONTINUED, each.args, {}) for each in requests])

    def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[float]:
        """Return how likely whole texts are."""
        return self._answers([TaskRequest(WHOLE, each.args, {}) for each in requests])

    def generate_until(self, requests: Sequence[Any]) -> list[str]:
        """Return how texts go on."""
        return self._answers(
            [TaskRequest(WRITTEN, each.args[:1], each.args[1]) for each in requests]
        )

    def _answers(self, requests: Sequence[TaskRequest]) -> list[Any]:
        name = f"asked.{self._asked}"
        self._asked += 1
        file = self._task.scratch_dir / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(requests_text(requests), encoding="utf-8")
        self._task.send(BatchWritten(name, str(file)))
        return read_answers(arrived(self._task, name).read_text("utf-8"), requests)


def arrived(task: Task, name: str) -> Path:
    """Wait for a late input.

    Raises:
        WorkFailedError: an end was asked for first.
    """
    while (found := task.arrived(name, LOOK_S)) is None:
        if task.stop_requested:
            raise WorkFailedError("it was asked to stop")
    return found
