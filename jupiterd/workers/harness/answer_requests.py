"""The task `answer_requests`: have a model answer what tasks of lm-evaluation-harness ask.

inputs: model; later batch.0, batch.1, ...: files of requests · params: device (auto, cpu or cuda)
A `BatchWritten` frame names the file of a batch's answers; the worker goes on until it is ended.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from lm_eval.api.instance import Instance  # pyright: ignore[reportMissingImports]
from lm_eval.utils import set_torch_seed  # pyright: ignore[reportMissingImports]

from jupiterd.cycle.questions.task_requests import (
    WRITTEN,
    TaskRequest,
    answers_text,
    read_requests,
)
from jupiterd.protocol.frames import BatchWritten, TaskFinished
from jupiterd.workers.evaluate.device_choice import AUTO, chosen_device
from jupiterd.workers.harness.asking_model import arrived
from jupiterd.workers.harness.harness_model import HarnessModel, opened_model
from jupiterd.workers.link import Task

DRAWN_WITH: Final = 1234
"""The harness's seed of torch, where a model draws lots."""


def run(task: Task) -> TaskFinished:
    """Do the task that was given."""
    device = chosen_device(str(task.params.get("device", AUTO)))
    model = opened_model(task.inputs["model"], device, lambda _: None)
    for number in count():
        name = f"batch.{number}"
        requests = read_requests(arrived(task, name).read_text("utf-8"))
        if not all(each.travels for each in requests):
            set_torch_seed(DRAWN_WITH)
        file = task.output_dir / f"answers.{number}.jsonl"
        file.write_text(answers_text(answers_of(model, requests)), encoding="utf-8")
        task.send(BatchWritten(name, str(file)))
    return TaskFinished({})


def answers_of(model: HarnessModel, requests: Sequence[TaskRequest]) -> list[Any]:
    """Return a model's answers, in the order of the requests; those of a kind are asked at once."""
    found: dict[int, Any] = {}
    for kind in dict.fromkeys(each.kind for each in requests):
        places = [at for at, each in enumerate(requests) if each.kind == kind]
        asked = [_instance(requests[at]) for at in places]
        answers = getattr(model, kind)(asked, disable_tqdm=True)
        found |= dict(zip(places, answers, strict=True))
    return [found[at] for at in range(len(requests))]


def _instance(request: TaskRequest) -> Any:  # noqa: ANN401 - the harness's
    settings = (dict(request.settings),) if request.kind == WRITTEN else ()
    return Instance(request.kind, {}, (*request.texts, *settings), 0)
