"""The document and the table of `model eval`.

Pure. Owns the keys and the columns. Doesn't know how anything is graded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.ctl.model.own_questions import GradedModel
from jupiterd.cycle.questions.accuracy import Accuracy, Interval, accuracy, by_topic, compared
from jupiterd.cycle.questions.question_file import DomainQuestion
from jupiterd.formats import plain, table

ALL = "all"
EVERY_ANSWER = "-o json has every answer, and whether it is nothing but a right one"
NO_DIFFERENCE = "which shows no difference"


def eval_document(
    tasks: str, questions: Sequence[DomainQuestion], models: Sequence[GradedModel]
) -> dict[str, Any]:
    """Return what a file of questions has shown of one model, or of two beside each other."""
    right = [[grade.is_right for grade in each.grades] for each in models]
    return {
        "tasks": tasks,
        "questions": len(questions),
        "models": [_model(each, questions) for each in models],
        "difference": _difference(*right) if len(right) == 2 else None,
        "answers": [_answer(place, question, models) for place, question in enumerate(questions)],
    }


def _model(model: GradedModel, questions: Sequence[DomainQuestion]) -> dict[str, Any]:
    right = [grade.is_right for grade in model.grades]
    topics = by_topic([each.topic for each in questions], right)
    return {
        "model": model.name,
        "id": model.artifact or None,
        **_share(accuracy(right)),
        "exact": sum(each.is_exact for each in model.grades),
        "topics": {topic: _share(found) for topic, found in topics.items()},
    }


def _share(found: Accuracy) -> dict[str, Any]:
    return {
        "right": found.right,
        "questions": found.questions,
        "share": found.share,
        **_bounds(found.interval),
    }


def _bounds(interval: Interval) -> dict[str, float]:
    return {"low": interval.low, "high": interval.high}


def _difference(first: Sequence[bool], second: Sequence[bool]) -> dict[str, Any]:
    found = compared(first, second)
    return {
        "only_first": found.only_first,
        "only_second": found.only_second,
        "share": found.difference,
        **_bounds(found.interval),
    }


def _answer(place: int, question: DomainQuestion, models: Sequence[GradedModel]) -> dict[str, Any]:
    return {
        "question": question.question,
        "right": list(question.answers),
        "given": [_given(question, each.grades[place].written, each.grades[place].picked)
                  for each in models],
        "is_right": [each.grades[place].is_right for each in models],
        "is_exact": [each.grades[place].is_exact for each in models],
    }  # fmt: skip


def _given(question: DomainQuestion, written: str, picked: int | None) -> str | None:
    if not question.choices:
        return written
    return None if picked is None else question.choices[picked]


def eval_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a table with a row for each topic, and what two models differ by."""
    models: Sequence[Mapping[str, Any]] = document["models"]
    heads = ["questions", "of", *(plain(each["model"]) for each in models)]
    rows = [
        [topic, models[0]["topics"][topic]["questions"],
         *(_cell(each["topics"][topic]) for each in models)]
        for topic in models[0]["topics"]
    ]  # fmt: skip
    rows.append([ALL, document["questions"], *map(_cell, models)])
    return [*table(heads, rows), *_difference_lines(document), EVERY_ANSWER]


def _cell(found: Mapping[str, Any]) -> str:
    low, high = 100 * found["low"], 100 * found["high"]
    return f"{100 * found['share']:.1f} % right (95 %: {low:.1f} to {high:.1f})"


def _difference_lines(document: Mapping[str, Any]) -> list[str]:
    found = document["difference"]
    if not found:
        return []
    first, second = (plain(each["model"]) for each in document["models"])
    shown = "better" if found["low"] > 0 else "worse" if found["high"] < 0 else NO_DIFFERENCE
    bounds = f"95 %: {100 * found['low']:+.1f} to {100 * found['high']:+.1f}"
    points = f"{100 * found['share']:+.1f} points"
    return [f"{first} beside {second}: {points} ({bounds}), {shown}"]
