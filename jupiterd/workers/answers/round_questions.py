"""Asks a round's models the domain's own questions, once it is scored and the prompts are answered.

Owns that order, and that this never costs a round anything but seconds: whatever goes wrong is told
in the summary and fails nothing. Doesn't know how answers are graded (`question_grading`).

inputs: questions, and those of `evaluation`
params: own_questions (models: role -> artifact; known: artifact -> its right answers and of how
many, of earlier rounds), engine, device
counts: as `cycle.questions.round_grades` has them
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.work_item import HALVINGS
from jupiterd.cycle.generation.round_answers import CANDIDATE
from jupiterd.cycle.questions.question_file import (
    QUESTIONS,
    QUESTIONS_FILE,
    DomainQuestion,
    read_questions,
)
from jupiterd.cycle.questions.round_grades import ASKED, TROUBLE, asked_in_round, grade_counts
from jupiterd.errors import ModelTooLargeError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.answers.answer_writer import reason_of
from jupiterd.workers.answers.question_grading import graded
from jupiterd.workers.link import Task

log = logging.getLogger(__name__)


def with_own_questions(
    task: Task, finished: TaskFinished, inputs: Mapping[str, str]
) -> TaskFinished:
    """Return what came of a piece, with the models' grades as far as they can be had.

    inputs: role -> the input that its model is
    """
    if not task.params.get(ASKED):
        return finished
    try:
        counts, trouble = _asked(task, inputs, int(finished.counts.get("texts", 0)))
    except Exception as error:  # noqa: BLE001 - nothing about these questions may fail a round
        counts, trouble = {}, reason_of(error)
    if trouble:
        log.warning("own_questions_missing: %s", trouble)
        finished = replace(finished, summary={**finished.summary, TROUBLE: trouble})
    return replace(finished, counts={**finished.counts, **counts})


def _asked(task: Task, inputs: Mapping[str, str], before: int) -> tuple[dict[str, float], str]:
    if task.params.get(HALVINGS):
        raise ModelTooLargeError("memory ran out in this piece of the evaluation before")
    text = (task.inputs[QUESTIONS] / QUESTIONS_FILE).read_text(encoding="utf-8")
    asked = asked_in_round(read_questions(text, QUESTIONS_FILE))
    models: Mapping[str, str] = task.params[ASKED]["models"]
    right = _known(task.params[ASKED].get("known", {}), len(asked), models)
    folders = {
        artifact: task.inputs[inputs[role]]
        for role, artifact in models.items()
        if artifact not in right
    }
    troubles: list[str] = []
    for number, (artifact, folder) in enumerate(folders.items()):
        done, total = before + number * len(asked), before + len(folders) * len(asked)
        try:
            right[artifact] = _right(task, asked, folder, done, total)
        except Exception as error:  # noqa: BLE001 - another model may still answer
            roles = " and ".join(role for role, each in models.items() if each == artifact)
            troubles.append(f"{roles}: {reason_of(error)}")
    return grade_counts(len(asked), right, models.get(CANDIDATE, "")), "; ".join(troubles)


def _known(known: Mapping[str, Any], asked: int, models: Mapping[str, str]) -> dict[str, int]:
    """Return what earlier rounds found of these models, where they asked as many."""
    found = {model: known[model] for model in models.values() if model in known}
    return {model: int(right) for model, (right, of) in found.items() if of == asked}


def _right(task: Task, asked: list[DomainQuestion], folder: Path, done: int, total: int) -> int:
    means = {name: task.params[name] for name in ("engine", "device") if name in task.params}
    grades = graded(folder, asked, means, lambda n: task.progress(done + n, total, "texts"))
    return sum(each.is_right for each in grades)
