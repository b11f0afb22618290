"""Has models of this machine answer people's own questions, in a worker process each.

Owns starting the worker and reading its grades. Doesn't know which models there are, or what is
shown of the grades (`eval_lines`).
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from jupiterd.ctl.model.eval_worker import OnProgress, written_by
from jupiterd.cycle.questions.grades import GRADES_FILE, Grade, read_grades
from jupiterd.cycle.questions.question_file import DomainQuestion, read_questions
from jupiterd.errors import NotFoundError
from jupiterd.path_text import path_text

TASK = "grade_questions"


@dataclass(frozen=True)
class GradedModel:
    """A model with what came of each question, in their order."""

    name: str
    artifact: str
    """Its id; empty where it is a folder of this machine."""
    grades: tuple[Grade, ...]


def questions_in(file: Path) -> list[DomainQuestion]:
    """Return the questions of a file.

    Raises:
        NotFoundError: it can't be read.
        UsageError: a line of it is no question.
    """
    try:
        return read_questions(file.read_text(encoding="utf-8"), path_text(file.name))
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"{path_text(file)} can't be read", "name a file of JSON lines"
        ) from error


def grades_of(folder: Path, questions: Path, device: str, told: OnProgress) -> list[Grade]:
    """Return a model's grades.

    Raises:
        JupiterError: the worker can't load the model, or ends without a result.
    """
    params = {"engine": "torch" if find_spec("torch") else "mlx", "device": device}
    inputs = {"model": folder, "questions": questions}
    return read_grades(written_by(TASK, params, inputs, f"grades/{GRADES_FILE}", told))
