"""The task `find_tasks`: see which tasks of lm-evaluation-harness are meant, before a model loads.

inputs: tasks (a folder with YAML files; without it those of the harness) · params: names (empty:
all of the folder), started_in (where its relative paths may start) · outputs: found (tasks.json)
"""

from pathlib import Path

from jupiterd.cycle.questions.task_scores import TASKS_FILE, tasks_text
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.harness.tasks import FOLDER, NAMES, STARTED_IN, TaskBook
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that was given."""
    book = TaskBook.open(task.inputs.get(FOLDER), Path(str(task.params[STARTED_IN])))
    names = [*map(str, task.params[NAMES])] or book.names()
    found = [each.found(book.surroundings()) for each in book.asked(names)]
    write_text(task.output_dir / "found" / TASKS_FILE, tasks_text(found))
    return TaskFinished({"found": "found"}, {"tasks": len(found)})
