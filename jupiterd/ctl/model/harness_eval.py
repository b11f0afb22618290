"""Has models of this machine scored in tasks of lm-evaluation-harness, each once.

Owns the order: which tasks are meant is seen before a model is fetched, and what was computed
before isn't computed again. Doesn't know what is shown of it (`harness_lines`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jupiterd.ctl.model.eval_worker import OnProgress, written_by
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.model.evaluation_cache import EvaluationCache
from jupiterd.cycle.questions.task_scores import (
    FINDING_TASKS,
    SCORES_FILE,
    SCORING_TASKS,
    TASKS_FILE,
    FoundTask,
    TaskScore,
    read_task_scores,
    read_tasks,
)
from jupiterd.errors import MissingExtraError

if TYPE_CHECKING:
    from jupiterd.ctl.model.spread_eval import SpreadEval

WRITTEN: Final = f"scores/{SCORES_FILE}"

INSTALL: Final = "pip install 'jupiterd[evaluation]'"


@dataclass(frozen=True)
class AskedTasks:
    """Tasks of lm-evaluation-harness, by names, or all of a folder."""

    names: Sequence[str] = ()
    folder: Path | None = None

    @property
    def label(self) -> str:
        """What people call them."""
        return ",".join(self.names) or ("" if self.folder is None else self.folder.name)

    @property
    def inputs(self) -> dict[str, Path]:
        """Return what a worker reads of them."""
        return {} if self.folder is None else {"tasks": self.folder}

    @property
    def params(self) -> dict[str, Any]:
        """Return what a worker is told of them."""
        return {"names": list(self.names), "started_in": str(Path.cwd())}


@dataclass(frozen=True)
class ScoredModel:
    """A model with a score of each metric of each task."""

    model: EvaluatedModel
    scores: Sequence[TaskScore]
    computed: int
    """So many tasks that weren't known before."""
    answered_by: Sequence[str] = ()
    """Machines that answered for it, where there was more than this one to ask."""


def check_harness() -> None:
    """Say what is missing, before anything is done.

    Raises:
        MissingExtraError: the harness isn't installed, or torch.
    """
    for name in ("lm_eval", "torch"):
        if find_spec(name) is None:
            raise MissingExtraError(f"tasks of lm-evaluation-harness need {name}", INSTALL)


def found_tasks(asked: AskedTasks) -> list[FoundTask]:
    """Return the tasks, whose data are there.

    Raises:
        NotFoundError: there is no such task.
        JupiterError: its data can't be had.
    """
    text = written_by(FINDING_TASKS, asked.params, asked.inputs, f"found/{TASKS_FILE}", _untold)
    return read_tasks(text)


@dataclass(frozen=True)
class HarnessEval:
    """Scores models in the tasks that were found."""

    asked: AskedTasks
    found: Sequence[FoundTask]
    device: str
    cache: EvaluationCache
    spread_from: Path | None = None
    """The state folder of the daemon that knows other machines; None: this one is asked alone."""
    notice: Callable[[str], None] = lambda _: None
    """Tells people which machines are asked, and which is lost."""

    def scored(self, model: EvaluatedModel, told: OnProgress) -> ScoredModel:
        """Return a model's scores; tasks that it was scored in before aren't computed.

        Raises:
            JupiterError: the worker can't load the model, or ends without a result.
        """
        content = model.content
        known = {task.name: self.cache.found(content, task.content) for task in self.found}
        unknown = [task for task in self.found if known[task.name] is None]
        rows, answered_by = self._computed(model, unknown, told) if unknown else ([], ())
        for task in unknown:
            known[task.name] = [row for row in rows if row.asked_as == task.name]
            self.cache.keep(content, task.content, known[task.name] or [])
        scores = [row for task in self.found for row in known[task.name] or ()]
        return ScoredModel(model, scores, len(unknown), answered_by)

    def _computed(
        self, model: EvaluatedModel, tasks: Sequence[FoundTask], told: OnProgress
    ) -> tuple[list[TaskScore], Sequence[str]]:
        params = {**self.asked.params, "names": [task.name for task in tasks]}
        if spread := self._spread(model):
            text, answered_by = spread.written(
                params, self.asked.inputs, WRITTEN, told, self.notice
            )
            return read_task_scores(text), answered_by
        inputs = {"model": model.folder, **self.asked.inputs}
        text = written_by(SCORING_TASKS, {**params, "device": self.device}, inputs, WRITTEN, told)
        return read_task_scores(text), ()

    def _spread(self, model: EvaluatedModel) -> "SpreadEval | None":
        """Return what asks other machines, too; None where there are none to ask."""
        if self.spread_from is None or not model.artifact:
            return None
        from jupiterd.ctl.model.spread_eval import SpreadEval, asked_line, task_nodes

        having = task_nodes(self.spread_from, model)
        if line := asked_line(model, having):
            self.notice(line)
        nodes = [each for each in having if not each.why_not]
        return SpreadEval(self.spread_from, model, nodes, self.device) if nodes else None


def _untold(_done: int, _total: int) -> None:
    """Tell nobody: reading tasks takes seconds."""
