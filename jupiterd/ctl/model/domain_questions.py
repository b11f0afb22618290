"""The questions of a domain, as `model eval` asks them: which ones, and what is shown of them.

Owns whose questions they are: those of the models' cycle, or else of the newest one that has any.
Doesn't know how they are graded (`own_questions`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.ctl.model.eval_lines import eval_document, eval_lines
from jupiterd.ctl.model.evaluated_model import FETCHING_S, EvaluatedModel
from jupiterd.ctl.model.own_questions import GradedModel, questions_in
from jupiterd.errors import NotFoundError
from jupiterd.formats import plain

OWN: Final = "own"
"""As tasks are named: the domain's own questions; no task of lm-evaluation-harness is called so."""


@dataclass(frozen=True)
class DomainQuestions:
    """A domain's own questions, whose file is on this machine."""

    domain: str
    file: Path

    def document(self, graded: Sequence[GradedModel]) -> dict[str, Any]:
        """Return what they have shown of one model, or of two beside each other."""
        found = eval_document(OWN, questions_in(self.file), graded)
        return {"kind": OWN, "domain": self.domain, **found}


def questions_beside(state_dir: Path, round_name: str) -> DomainQuestions | None:
    """Return the questions of the cycle that a round is of; None: it has none.

    Raises:
        NotFoundError: nobody in reach has them.
    """
    return _asked_of(state_dir, round_name)


def questions_meant(state_dir: Path, models: Sequence[EvaluatedModel]) -> DomainQuestions:
    """Return the questions of the first of these models whose cycle has any, or the newest ones.

    Raises:
        NotFoundError: no cycle has questions, or nobody in reach has them.
    """
    for wanted in (*(each.artifact for each in models if each.artifact), ""):
        if (found := _asked_of(state_dir, wanted)) is not None:
            return found
    raise NotFoundError(
        "no cycle has questions of its own",
        "name their file in the domain's: evaluation.questions; or here: --tasks FILE",
    )


def own_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a table of a domain's own questions."""
    return [f"questions of {plain(document['domain'])}", *eval_lines(document)]


def _asked_of(state_dir: Path, wanted: str) -> DomainQuestions | None:
    from jupiterd.ctl.calls import ask_over_grpc

    found = ask_over_grpc(state_dir, f"questions/{wanted}", FETCHING_S)["questions"]
    return None if found is None else DomainQuestions(str(found["domain"]), Path(found["file"]))
