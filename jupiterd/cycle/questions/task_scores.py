"""What a model scores in the tasks of lm-evaluation-harness: the record that a worker writes.

Owns its form, and what the worker's own tasks are called. Pure. Doesn't know how anything is
scored, or the harness.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from jupiterd.cycle.questions.estimate import (
    Estimate,
    Shares,
    difference,
    estimated,
    unpaired,
    with_error,
)
from jupiterd.errors import CorruptArtifactError

FINDING_TASKS: Final = "find_tasks"
"""Reads the data sets of tasks, which the worker that scores a model finds on the disk then."""
SCORING_TASKS: Final = "grade_tasks"

SCORES_FILE: Final = "task_scores.jsonl"
TASKS_FILE: Final = "tasks.json"


@dataclass(frozen=True)
class FoundTask:
    """A task or a group of tasks that was asked for, whose data are there."""

    name: str
    content: str
    """A hash of all that decides its questions; it changes where they do."""
    documents: int


@dataclass(frozen=True)
class TaskScore:
    """One metric of one task, or of a group of tasks."""

    asked_as: str
    """The task or group that was asked for, of which it is a part."""
    task: str
    metric: str
    filter: str
    """What the harness did with answers before it compared them; "none" mostly."""
    value: float
    standard_error: float | None
    is_higher_better: bool | None
    documents: int
    values: tuple[float, ...] = ()
    """Of each document, in their order; none where they don't add up to the value."""
    weights: tuple[float, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what tells this row from others."""
        return (self.task, self.metric, self.filter)

    @property
    def estimate(self) -> Estimate:
        """Return the value with its interval."""
        if self.values:
            return Estimate(self.value, estimated(self.shares).interval)
        return with_error(self.value, self.standard_error)

    def less(self, other: "TaskScore") -> tuple[Estimate, bool]:
        """Return by how much it is more than another model's, and whether documents are paired."""
        if self.values and self.weights == other.weights:
            return difference(self.shares, other.shares), True
        return unpaired(self.estimate, other.estimate), False

    @property
    def shares(self) -> Shares:
        """Return what each document adds to the value."""
        return Shares(self.values, self.weights)


def score_lines(scores: Iterable[TaskScore]) -> str:
    """Return the text of a file of scores."""
    return "".join(json.dumps(asdict(each), sort_keys=True) + "\n" for each in scores)


def read_task_scores(text: str) -> list[TaskScore]:
    """Return the scores of a file.

    Raises:
        CorruptArtifactError: it is none.
    """
    try:
        return [_score(json.loads(line)) for line in text.splitlines()]
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptArtifactError("a file of task scores can't be read") from error


def _score(row: dict[str, Any]) -> TaskScore:
    parts: Any = {name: tuple(row[name]) for name in ("values", "weights")}
    return TaskScore(**row | parts)


def tasks_text(tasks: Sequence[FoundTask]) -> str:
    """Return the text of a file of tasks."""
    return json.dumps([asdict(each) for each in tasks], indent=1) + "\n"


def read_tasks(text: str) -> list[FoundTask]:
    """Return the tasks of a file."""
    rows: list[Mapping[str, Any]] = json.loads(text)
    return [FoundTask(str(row["name"]), str(row["content"]), int(row["documents"]))
            for row in rows]  # fmt: skip
