"""The task `grade_questions`: have a model answer people's own questions, and grade the answers.

Owns how a question is put. A model that is talked to is asked by its own template and told to be
brief, as only its first line is compared; any other goes on behind `Answer:`. Of choices each is
scored behind the question, and the likeliest for its length counts. Doesn't know the rules of
grading (`cycle.questions.grading`).

inputs: model, questions (a file of JSON lines)
params: engine (torch or mlx), device (of torch: auto, cpu or cuda)
outputs: grades (grades.jsonl) · counts: questions, right
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

from jupiterd.cycle.questions.grades import GRADES_FILE, MAX_WRITTEN_CHARS, Grade, grade_lines
from jupiterd.cycle.questions.grading import is_exact, matches, picked
from jupiterd.cycle.questions.question_file import DomainQuestion, read_questions
from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.answers.answer_writer import GREEDY, fitting
from jupiterd.workers.evaluate.device_choice import chosen_device
from jupiterd.workers.evaluate.score import DEFAULT_BATCH_WINDOWS
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.evaluate.scorers import CPU, TORCH, open_scorer
from jupiterd.workers.evaluate.text_scorer import Stream
from jupiterd.workers.generate.engine import Request
from jupiterd.workers.generate.engines import AUTO, engine_of_folder
from jupiterd.workers.generate.model_text import ModelText
from jupiterd.workers.link import Task

_BRIEF: Final = "Reply with the answer alone."

OnGraded = Callable[[int], None]
"""Told how many questions are answered so far."""


def run(task: Task) -> TaskFinished:
    """Do the task that was given.

    Raises:
        UsageError: the file has a line that is no question.
    """
    file = task.inputs["questions"]
    questions = read_questions(file.read_text(encoding="utf-8"), file.name)
    total = len(questions)
    params = {**task.params, "device": _device(task.params)}
    grades = graded(
        task.inputs["model"], questions, params, lambda n: task.progress(n, total, "questions")
    )
    write_text(task.output_dir / "grades" / GRADES_FILE, grade_lines(grades))
    counts = {"questions": total, "right": sum(each.is_right for each in grades)}
    return TaskFinished({"grades": "grades"}, counts)


def _device(params: Mapping[str, Any]) -> str:
    device = str(params.get("device", CPU))
    return chosen_device(device) if params.get("engine", TORCH) == TORCH else device


def graded(
    model: Path, questions: Sequence[DomainQuestion], params: Mapping[str, Any], told: OnGraded
) -> list[Grade]:
    """Return a grade for each question, in their order."""
    places = [place for place, each in enumerate(questions) if each.choices]
    open_places = [place for place, each in enumerate(questions) if not each.choices]
    found: dict[int, Grade] = {}
    if places:
        chosen = _chosen(model, [questions[place] for place in places], params, told)
        found |= zip(places, chosen, strict=True)
    if open_places:
        asked = [questions[place] for place in open_places]
        written = _written(model, asked, params, lambda n: told(len(places) + n))
        found |= zip(open_places, written, strict=True)
    return [found[place] for place in range(len(questions))]


def _prompt(question: DomainQuestion) -> Prompt:
    asked = question.question.strip()
    return Prompt(f"{asked}\n\n{_BRIEF}", f"Question: {asked}\nAnswer:")


def _written(
    model: Path, questions: Sequence[DomainQuestion], params: Mapping[str, Any], told: OnGraded
) -> list[Grade]:
    engine = engine_of_folder(model, {**params, "wanted_engine": AUTO})
    requests = [Request(fitting(engine, _prompt(each)), seed=0) for each in questions]
    found: dict[int, Grade] = {}
    for number, answer in engine.write(requests, GREEDY):
        text = answer.text
        found[number] = Grade(
            matches(questions[number], text),
            text[:MAX_WRITTEN_CHARS],
            is_exact=is_exact(questions[number], text),
        )
        told(len(found))
    return [found[number] for number in range(len(questions))]


def _chosen(
    model: Path, questions: Sequence[DomainQuestion], params: Mapping[str, Any], told: OnGraded
) -> list[Grade]:
    scorer = open_scorer(model, str(params.get("engine", TORCH)), str(params.get("device", CPU)))
    text = ModelText(model)
    streams = [stream for each in questions for stream in _streams(text, each)]
    ends = list(accumulate((len(each.choices) for each in questions), initial=0))
    nats = scorer.stream_nats(
        streams, DEFAULT_BATCH_WINDOWS, lambda n: told(n * len(questions) // len(streams))
    )
    places = (
        picked(nats[start:end], each.choices)
        for each, (start, end) in zip(questions, pairwise(ends), strict=True)
    )
    return [
        Grade(place == each.right_choice, picked=place, is_exact=place == each.right_choice)
        for each, place in zip(questions, places, strict=True)
    ]


def _streams(text: ModelText, question: DomainQuestion) -> list[Stream]:
    """Return the question with each of its choices; of each, only the choice is scored."""
    prompt = _prompt(question)
    context = text.ids(prompt)
    blank = " " if text.is_opened(prompt) else ""
    encoded = [text.tokenizer.encode(blank + each, add_special_tokens=False).ids
               for each in question.choices]  # fmt: skip
    return [
        Stream([*context, *ids], [*([False] * len(context)), *([True] * len(ids))])
        for ids in encoded
    ]
