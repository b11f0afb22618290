"""The task `grade_tasks`: score a model in tasks of lm-evaluation-harness.

inputs: model (without it others answer: see `asking_model`), tasks (see `find_tasks`)
params: names, started_in, device (auto, cpu or cuda) · outputs: scores (task_scores.jsonl)
counts: requests
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.cycle.questions.task_scores import SCORES_FILE, score_lines
from jupiterd.errors import WorkFailedError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.device_choice import AUTO, chosen_device
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.harness.sample_scores import task_scores
from jupiterd.workers.harness.tasks import FOLDER, NAMES, STARTED_IN, AskedTask, TaskBook
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that was given."""
    from lm_eval.evaluator import simple_evaluate  # pyright: ignore[reportMissingImports]

    book = TaskBook.open(task.inputs.get(FOLDER), Path(str(task.params[STARTED_IN])))
    asked = book.asked([*map(str, task.params[NAMES])])
    total = requests_of(asked)
    names = [each.name for each in asked]
    results: Any = simple_evaluate(
        model=_model(task, total), tasks=names, task_manager=book.manager
    )
    if results is None:
        raise WorkFailedError("lm-evaluation-harness gave no results")
    rows = task_scores(results, _asked_as(asked, results.get("group_subtasks", {})))
    write_text(task.output_dir / "scores" / SCORES_FILE, score_lines(rows))
    return TaskFinished({"scores": "scores"}, {"requests": total})


def _model(task: Task, total: int) -> Any:  # noqa: ANN401 - the harness's
    if "model" not in task.inputs:
        from jupiterd.workers.harness.asking_model import AskingModel

        return AskingModel(task)
    from jupiterd.workers.harness.harness_model import opened_model

    return opened_model(
        task.inputs["model"],
        chosen_device(str(task.params.get("device", AUTO))),
        lambda answered: task.progress(min(answered, total), total, "requests"),
    )


def requests_of(asked: Sequence[AskedTask]) -> int:
    """Return how often a model will be asked at least: of choices each one is a request."""
    tasks = [task for each in asked for task in each.tasks.values()]
    return sum(_requests(task) for task in tasks)


def _requests(task: Any) -> int:  # noqa: ANN401 - the harness's
    if task.OUTPUT_TYPE != "multiple_choice":
        return len(task.eval_docs)
    return sum(len(task.doc_to_choice(document)) for document in task.eval_docs)


def _asked_as(asked: Sequence[AskedTask], subtasks: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the name that was asked for, of each task and each group below it."""
    found = {task: each.name for each in asked for task in each.tasks}
    found |= {each.name: each.name for each in asked}
    for each in asked:
        waiting = list(subtasks.get(each.name, ()))
        while waiting:
            name = waiting.pop()
            found[name] = each.name
            waiting += subtasks.get(name, ())
    return found
