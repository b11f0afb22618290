"""`jupiterctl model eval`: grades a model's answers to people's own questions.

Owns the command, and which folder a name means. Doesn't grade (`own_questions`).
"""

from functools import partial
from pathlib import Path

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.path_text import path_text

FETCHING_S = 3600.0
"""Seconds to wait for weights from other nodes."""

DEVICES = ("cpu", "cuda")


@click.command("eval", cls=GlobalOptionsCommand)
@click.argument("model", metavar="MODEL")
@click.option(
    "--tasks",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Questions with their answers, as JSON lines.",
)
@click.option("--beside", metavar="MODEL", help="Another model that answers the same questions.")
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="cpu",
    show_default=True,
    help="What computes; a GPU may be busy with training.",
)
@click.pass_obj
def eval_model(
    invocation: Invocation, model: str, tasks: Path, beside: str | None, device: str
) -> None:
    """Say how many of your own questions a model answers rightly.

    MODEL is DOMAIN/ROUND or RUN/ROUND, a training run's name, the beginning of an id, or a folder
    of this machine. A line of FILE is {"question": "Who wrote it?", "answer": "Ada"}, which is
    compared with what the model writes, or {"question": "Who wrote it?", "choices": ["Ada", "Bob"],
    "answer": 0}, of which the likeliest choice counts. An answer may be a list of answers that are
    all right, and "topic" makes a row of the table. Models answer on this machine, which fetches
    what it lacks. Nothing is recorded, and no verdict depends on it.

    \b
    Examples:
      jupiterctl model eval python/2 --tasks questions.jsonl
      jupiterctl model eval python/2 --tasks questions.jsonl --beside python/1
      jupiterctl model eval ./my-model --tasks questions.jsonl -o json | jq .eval.models
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.model.eval_lines import eval_document, eval_lines
    from jupiterd.ctl.model.own_questions import GradedModel, grades_of, questions_in

    questions = questions_in(tasks)
    console = Console.of(invocation)
    graded: list[GradedModel] = []
    for name in filter(None, (model, beside)):
        artifact, folder = _found(invocation, name)
        shown = name if artifact else folder.name
        grades = grades_of(folder, tasks, device, partial(_told, console, shown))
        graded.append(GradedModel(shown, artifact, tuple(grades)))
    console.settle()
    found = eval_document(path_text(tasks), questions, graded)
    console.show({"schema": SCHEMA, "eval": found}, lambda: eval_lines(found))


def _told(console: Console, name: str, answered: int, questions: int) -> None:
    console.passing_notice(f"{name} has answered {answered} of {questions} questions")


def _found(invocation: Invocation, name: str) -> tuple[str, Path]:
    """Return a model's id, empty of a folder of this machine, and the folder of its files."""
    from jupiterd.ctl.calls import ask_over_grpc

    if (Path(name) / "config.json").is_file():
        return "", Path(name).resolve()
    document = ask_over_grpc(invocation.state_dir, f"model_export/{name}", FETCHING_S)["model"]
    return str(document["id"]), Path(document["files_at"])
