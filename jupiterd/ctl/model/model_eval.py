"""`jupiterctl model eval`: what a model scores on held-out text, in tasks and own questions.

Owns the command, and which of these is meant. Doesn't score.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.options.adapter_base import base_option
from jupiterd.ctl.options.values import SERVED_MODEL
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import JupiterError, UsageError
from jupiterd.formats import plain
from jupiterd.path_text import path_of, path_text

if TYPE_CHECKING:
    from jupiterd.ctl.model.eval_progress import EvalProgress
    from jupiterd.ctl.model.evaluated_model import EvaluatedModel
    from jupiterd.ctl.model.harness_eval import ScoredModel
    from jupiterd.ctl.model.own_questions import GradedModel

DEVICES = ("auto", "cpu", "cuda")

Shown = tuple[dict[str, Any], Callable[[Mapping[str, Any]], list[str]]]
"""A document, and what makes lines of it."""


@click.command("eval", cls=GlobalOptionsCommand)
@click.argument("model", metavar="MODEL", type=SERVED_MODEL)
@click.option(
    "--tasks",
    metavar="own|FILE|NAMES|FOLDER",
    help="Questions, or tasks of lm-evaluation-harness; left out: held-out text and own questions.",
)
@click.option("--beside", metavar="MODEL", help="Another model that is asked the same.")
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="auto",
    show_default=True,
    help="What computes; auto: a GPU that has nothing else to do, or the CPU.",
)
@base_option
@click.option("--alone", is_flag=True, help="Ask tasks on this machine alone.")
@click.pass_obj
def eval_model(  # noqa: PLR0913 - an option each
    invocation: Invocation,
    model: str,
    tasks: str | None,
    beside: str | None,
    device: str,
    base: str | None,
    *,
    alone: bool,
) -> None:
    """Say what a model scores, alone or beside another one.

    MODEL is DOMAIN/ROUND or RUN/ROUND, a training run's name, promoted, base (what its cycle began
    with; beside MODEL, what that one's training began with), the beginning of an id, or a folder of
    this machine. It answers on this machine, which fetches what it lacks. Nothing is recorded, and
    no verdict depends on it.

    Without --tasks it is scored on the text by which the gate judged its round, or that of the
    model beside it, or else the newest one: bits per byte, as verdicts have them. It is also asked
    the domain's own questions, where its cycle has any (evaluation.questions); --tasks own asks
    these alone.

    FILE has your own questions, one a line: {"question": "Who wrote it?", "answer": "Ada"}, which
    is looked for in the first line that the model writes, or {"question": "Who wrote it?",
    "choices": ["Ada", "Bob"], "answer": 0}, of which the likeliest choice counts. An answer may be
    a list of answers that are all right, and "topic" makes a row of the table.

    NAMES are tasks of lm-evaluation-harness, with commas between them; FOLDER has such tasks as
    YAML files. A folder may hold Python, which runs, here alone. Members that have the model too,
    and don't train, are asked with this machine. What was computed here before isn't again.

    \b
    Examples:
      jupiterctl model eval python/2 --beside base
      jupiterctl model eval promoted --tasks own --beside base
      jupiterctl model eval python/2 --tasks questions.jsonl --beside python/1
      jupiterctl model eval python/2 --tasks hellaswag,arc_easy --beside base
      jupiterctl model eval ./my-model --tasks ./my-tasks -o json | jq .eval.scores
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.sources.adapter_model import usable_models

    console = Console.of(invocation)
    names = usable_models(model, beside or "", base, invocation.state_dir)
    evaluation = _Evaluation(invocation, console, names, device, alone=alone)
    found, lines = evaluation.held_out() if tasks is None else evaluation.of(tasks)
    console.settle()
    console.show({"schema": SCHEMA, "eval": found}, lambda: lines(found))


class _Evaluation:
    """One call of the command."""

    def __init__(
        self,
        invocation: Invocation,
        console: Console,
        names: list[str],
        device: str,
        *,
        alone: bool,
    ) -> None:
        self._invocation, self._console = invocation, console
        self._names, self._device, self._alone = names, device, alone

    def of(self, tasks: str) -> Shown:
        """Return what models score in that: a file, a folder, or names."""
        from jupiterd.ctl.model.domain_questions import OWN, own_lines, questions_meant

        if tasks == OWN:
            models = [self._model(name) for name in self._names]
            asked = questions_meant(self._invocation.state_dir, models)
            return asked.document(self._graded(asked.file, models)), own_lines
        path = path_of(tasks)
        if path.is_dir():
            return self._harness((), path)
        is_file = path.exists() or path.suffix in {".jsonl", ".json"} or "/" in tasks
        if is_file:
            return self._questions(path)
        names = tuple(filter(None, (each.strip() for each in tasks.split(","))))
        if not names:
            raise UsageError("--tasks names nothing", "leave it out to score held-out text")
        return self._harness(names, None)

    def held_out(self) -> Shown:
        """Return the models' bits per byte on held-out text, and the domain's own questions."""
        from jupiterd.ctl.model.held_out_eval import (
            held_out_document,
            held_out_lines,
            held_out_text,
            nats_of,
        )

        state_dir = self._invocation.state_dir
        models = [self._model(name) for name in self._names]
        self._console.passing_notice("looking for the held-out text")
        text = held_out_text(state_dir, models)
        nats: list[list[float]] = []
        for model in models:
            with self._progress(model.name, "texts") as told:
                nats.append(nats_of(model, text, self._device, state_dir, told))
        own = self._own(text.round, models)
        return held_out_document(text, models, nats) | {"questions": own}, held_out_lines

    def _own(self, round_name: str, models: "Sequence[EvaluatedModel]") -> dict[str, Any] | None:
        """Return what the questions of a round's cycle show; None: there are none to be had."""
        from jupiterd.ctl.model.domain_questions import questions_beside

        try:
            asked = questions_beside(self._invocation.state_dir, round_name)
            return None if asked is None else asked.document(self._graded(asked.file, models))
        except JupiterError as error:  # the held-out text is scored by now
            self._console.notice(plain(error.message))
            return None

    def _questions(self, file: Path) -> Shown:
        from jupiterd.ctl.model.eval_lines import eval_document, eval_lines
        from jupiterd.ctl.model.own_questions import questions_in

        questions = questions_in(file)
        graded = self._graded(file, map(self._model, self._names))
        return eval_document(path_text(file), questions, graded), eval_lines

    def _graded(self, file: Path, models: "Iterable[EvaluatedModel]") -> "list[GradedModel]":
        from jupiterd.ctl.model.evaluation_cache import EvaluationCache
        from jupiterd.ctl.model.own_questions import QuestionEval

        cache = EvaluationCache(self._invocation.state_dir)
        asked = QuestionEval(file, self._device, cache)
        graded: list[GradedModel] = []
        for model in models:
            with self._progress(model.name, "questions") as told:
                graded.append(asked.graded(model, told))
        return graded

    def _harness(self, names: tuple[str, ...], folder: Path | None) -> Shown:
        from jupiterd.ctl.model.evaluation_cache import EvaluationCache
        from jupiterd.ctl.model.harness_eval import (
            AskedTasks,
            HarnessEval,
            check_harness,
            found_tasks,
        )
        from jupiterd.ctl.model.harness_lines import harness_document, harness_lines

        check_harness()
        asked = AskedTasks(names, folder)
        self._console.passing_notice("reading the tasks")
        found = found_tasks(asked)
        state_dir = self._invocation.state_dir
        cache, spread_from = EvaluationCache(state_dir), None if self._alone else state_dir
        notice = self._console.notice
        evaluation = HarnessEval(asked, found, self._device, cache, spread_from, notice)
        scored: list[ScoredModel] = []
        for model in map(self._model, self._names):
            with self._progress(model.name, "requests") as told:
                scored.append(evaluation.scored(model, told))
        return harness_document(asked, scored), harness_lines

    def _model(self, name: str) -> "EvaluatedModel":
        from jupiterd.ctl.model.evaluated_model import evaluated_model

        self._console.passing_notice(f"{name}: looking for its files")
        return evaluated_model(self._invocation.state_dir, name)

    def _progress(self, name: str, unit: str) -> "EvalProgress":
        from jupiterd.ctl.model.eval_progress import EvalProgress

        return EvalProgress(self._console, plain(name), unit)
