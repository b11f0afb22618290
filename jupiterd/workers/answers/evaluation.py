"""The task `evaluate`: score held-out text, then have the models answer prompts and questions.

Owns that order, and that answers never cost a round anything but seconds: the scores are written
before, and whatever goes wrong with answers is told in the summary and fails nothing. Doesn't know
how text is scored (`evaluate.score`, which has the other inputs and params), or how answers are
written (`answer_writer`), or the domain's own questions are asked (`round_questions`, which has
further inputs, params and counts).

inputs: model, incumbent, base, holdout.N, previous_answers (of an earlier round; may be absent)
params: answers (the cycle's id, and role -> artifact of its model; absent: none are wanted),
language, engine, device, purged
outputs: those of scoring, and answers (answers.json), where there are any
summary: answers_trouble, where some couldn't be written
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.work_item import HALVINGS, PREVIOUS
from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.generation.asked_prompts import chosen_prompts
from jupiterd.cycle.generation.round_answers import (
    ANSWERS,
    ANSWERS_FILE,
    BASE,
    CANDIDATE,
    INCUMBENT,
    TROUBLE,
    RoundAnswers,
    read_answers,
)
from jupiterd.errors import CorruptArtifactError, EmptySourceError, ModelTooLargeError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.answers.answer_writer import AskedModel, Asking, answered, reason_of
from jupiterd.workers.answers.round_questions import with_own_questions
from jupiterd.workers.evaluate.score import scored
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.link import Task
from jupiterd.workers.samples.sample_file import read_all

log = logging.getLogger(__name__)

_INPUTS = {CANDIDATE: "model", INCUMBENT: "incumbent", BASE: "base"}
"""Role -> the input that its model is; who is judged answers first."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    if not task.params.get(ANSWERS):
        return scored(task, task.progress)
    asking, trouble = _prepared(task)
    if asking is None:
        return with_own_questions(task, _told(scored(task, task.progress), trouble), _INPUTS)
    more = asking.to_write
    finished = scored(task, lambda done, total, unit: task.progress(done, total + more, unit))
    return with_own_questions(task, _with_answers(task, asking, finished), _INPUTS)


def _prepared(task: Task) -> tuple[Asking | None, str]:
    """Return what is asked of whom; or None, and why nothing is."""
    try:
        return _asking(task), ""
    except Exception as error:  # noqa: BLE001 - nothing about answers may fail a round
        return None, reason_of(error)


def _asking(task: Task) -> Asking:
    """Return what is asked of whom.

    Raises:
        ModelTooLargeError: a worker of this piece was killed for memory before: scores come first.
        EmptySourceError: there is no development text that can be asked about.
    """
    if task.params.get(HALVINGS):
        raise ModelTooLargeError("memory ran out in this piece of the evaluation before")
    wanted: Mapping[str, Any] = task.params[ANSWERS]
    before = _before(task.inputs.get(f"{PREVIOUS}{ANSWERS}"))
    purge = Purge(map(str, task.params.get("purged", ())))
    prompts = chosen_prompts(
        purge.left(read_all(task.inputs_named("holdout"))),
        str(task.params.get("language", "")),
        str(wanted["cycle"]),
        () if before is None else before.prompts,
    )
    if not prompts:
        raise EmptySourceError("there is no development text that can be asked about")
    models = {
        role: AskedModel(str(wanted["models"][role]), task.inputs[name])
        for role, name in _INPUTS.items()
        if role in wanted["models"]
    }
    return Asking(models, prompts, before)


def _before(folder: Path | None) -> RoundAnswers | None:
    """Return the answers of an earlier round; None where they can't be read: they save work."""
    if folder is None:
        return None
    try:
        return read_answers((folder / ANSWERS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, CorruptArtifactError):
        return None


def _with_answers(task: Task, asking: Asking, finished: TaskFinished) -> TaskFinished:
    """Return what came of scoring, with the answers as far as they can be had."""
    scored_texts = int(finished.counts.get("texts", 0))
    total = scored_texts + asking.to_write
    try:
        answers, trouble = answered(
            asking, task.params, lambda n: task.progress(scored_texts + n, total, "texts")
        )
        if answers.written:
            write_text(task.output_dir / ANSWERS / ANSWERS_FILE, answers.to_json())
    except Exception as error:  # noqa: BLE001 - as above: what is scored is there
        return _told(finished, reason_of(error))
    task.progress(total, total, "texts")
    outputs = {**finished.outputs, **({ANSWERS: ANSWERS} if answers.written else {})}
    counts = {**finished.counts, "texts": total}
    return _told(replace(finished, outputs=outputs, counts=counts), trouble)


def _told(finished: TaskFinished, trouble: str) -> TaskFinished:
    if not trouble:
        return finished
    log.warning("answers_missing: %s", trouble)
    return replace(finished, summary={**finished.summary, TROUBLE: trouble})
