"""Has models of this machine answer people's own questions, in a worker process each.

Owns starting the worker and reading its grades. Doesn't know which models there are, or what is
shown of the grades (`eval_lines`).
"""

from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from blake3 import blake3

from jupiterd.ctl.model.eval_worker import OnProgress, written_by
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.model.evaluation_cache import EvaluationCache
from jupiterd.ctl.model.grading_rules import GRADING, rules
from jupiterd.cycle.questions.grades import GRADES_FILE, Grade, grade_lines, read_grades
from jupiterd.cycle.questions.question_file import DomainQuestion, read_questions
from jupiterd.errors import CorruptArtifactError, NotFoundError
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


@dataclass(frozen=True)
class QuestionEval:
    """Grades models on the questions of a file."""

    file: Path
    device: str
    cache: EvaluationCache

    def graded(self, model: EvaluatedModel, told: OnProgress) -> GradedModel:
        """Return a model with its grades; one that was asked these questions before isn't again.

        Raises:
            JupiterError: the worker can't load the model, or ends without a result.
        """
        content, task = model.content, self._task()
        found = self._known(content, task)
        if found is None:
            found = self._computed(model.folder, told)
            self.cache.keep_text(content, task, grade_lines(found))
        return GradedModel(model.name, model.artifact, tuple(found))

    def _task(self) -> str:
        """Return what decides the grades beside the model: the questions, and the rules."""
        return f"{TASK} {rules(GRADING)} {blake3(self.file.read_bytes()).hexdigest()}"

    def _known(self, content: str, task: str) -> list[Grade] | None:
        with suppress(CorruptArtifactError):
            if (text := self.cache.found_text(content, task)) is not None:
                return read_grades(text)
        return None

    def _computed(self, folder: Path, told: OnProgress) -> list[Grade]:
        params = {"engine": "torch" if find_spec("torch") else "mlx", "device": self.device}
        inputs = {"model": folder, "questions": self.file}
        return read_grades(written_by(TASK, params, inputs, f"grades/{GRADES_FILE}", told))
