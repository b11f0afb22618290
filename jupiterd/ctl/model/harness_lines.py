"""The document and the table of `model eval` for tasks of lm-evaluation-harness.

Pure. Owns the keys and the columns, and which rows of two models belong together.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.ctl.model.harness_eval import AskedTasks, ScoredModel
from jupiterd.cycle.questions.estimate import Estimate
from jupiterd.cycle.questions.task_scores import TaskScore
from jupiterd.formats import plain, table

NO_FILTER = "none"


def harness_document(asked: AskedTasks, models: Sequence[ScoredModel]) -> dict[str, Any]:
    """Return what one model scored in some tasks, or two beside each other."""
    columns = [{score.key: score for score in each.scores} for each in models]
    rows = [[column[score.key] for column in columns] for score in models[0].scores
            if all(score.key in column for column in columns)]  # fmt: skip
    return {
        "kind": "tasks",
        "tasks": asked.label,
        "models": [
            {"model": each.model.name, "id": each.model.artifact or None,
             "computed_tasks": each.computed, "answered_by": [*each.answered_by]}
            for each in models
        ],
        "scores": [_row(row) for row in rows],
    }  # fmt: skip


def _row(scores: Sequence[TaskScore]) -> dict[str, Any]:
    first = scores[0]
    return {
        "task": first.task,
        "asked_as": first.asked_as,
        "metric": first.metric,
        "filter": first.filter,
        "is_higher_better": first.is_higher_better,
        "documents": first.documents,
        "values": [estimate_document(each.estimate) | {"standard_error": each.standard_error}
                   for each in scores],
        "difference": _difference(*scores) if len(scores) == 2 else None,
    }  # fmt: skip


def _difference(first: TaskScore, second: TaskScore) -> dict[str, Any]:
    found, is_paired = first.less(second)
    return estimate_document(found) | {"is_paired": is_paired}


def estimate_document(estimate: Estimate) -> dict[str, float | None]:
    """Return a figure with its bounds."""
    bounds = estimate.interval
    return {
        "value": _finite(estimate.value),
        "low": None if bounds is None else bounds.low,
        "high": None if bounds is None else bounds.high,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def harness_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a table with a row for each metric of each task."""
    models: Sequence[Mapping[str, Any]] = document["models"]
    heads = ["task", "metric", "of", *(plain(each["model"]) for each in models)]
    rows: Sequence[Mapping[str, Any]] = document["scores"]
    if len(models) < 2:
        return table(heads, [_cells(row) for row in rows])
    body = [[*_cells(row), estimate_text(row["difference"], "+"), _shown(row)] for row in rows]
    return table([*heads, "difference", "shown"], body)


def _cells(row: Mapping[str, Any]) -> list[object]:
    metric = row["metric"] if row["filter"] == NO_FILTER else f"{row['metric']} {row['filter']}"
    return [row["task"], metric, row["documents"], *map(estimate_text, row["values"])]


def estimate_text(found: Mapping[str, Any], sign: str = "") -> str:
    """Return a figure with its bounds, as people read it; sign: `+` for a difference."""
    if found["value"] is None:
        return "-"
    value = f"{found['value']:{sign}.4f}"
    if found["low"] is None:
        return value
    return f"{value} (95 %: {found['low']:{sign}.4f} to {found['high']:{sign}.4f})"


def _shown(row: Mapping[str, Any]) -> str:
    return shown_by(row["difference"], is_higher_better=row["is_higher_better"])


def shown_by(found: Mapping[str, Any], *, is_higher_better: bool | None) -> str:
    """Return what a difference shows; of many rows one in twenty shows what isn't there."""
    if found["low"] is None or is_higher_better is None:
        return "-"
    if found["low"] <= 0 <= found["high"]:
        return "no difference"
    return "better" if (found["low"] > 0) == is_higher_better else "worse"
