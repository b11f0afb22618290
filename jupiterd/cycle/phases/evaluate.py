"""The items that score a candidate on held-out text, and whom it is compared with.

Owns what is scored and by how many items. Doesn't know what the scores mean (`cycle.gate`).
"""

from typing import TYPE_CHECKING

from jupiterd.cycle.base.work_item import PREVIOUS, Phase, WorkItem
from jupiterd.cycle.data.split import DEV, GATE, VAULT
from jupiterd.cycle.generation.promotion import main_generator
from jupiterd.cycle.generation.round_answers import ANSWERS, BASE, CANDIDATE, INCUMBENT
from jupiterd.cycle.phases.collect import held_out
from jupiterd.cycle.phases.counting_verdict import is_shown_the_vault
from jupiterd.cycle.phases.filter import uniting
from jupiterd.cycle.phases.proxies import control_items
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.questions.question_file import QUESTIONS
from jupiterd.cycle.questions.round_grades import ASKED, grades_in
from jupiterd.errors import Bug
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape

EVALUATION_PIECES = 2
"""Evaluation is cut into this many items, so that two nodes share it; ids must never change."""

GENERAL_TEXT = "general@1"
"""Name@version of the text that shows what a model has forgotten, which ships with Jupiter."""

COMPLETIONS = 8
"""So many texts a candidate writes before it is compared, to see whether it works at all."""


def evaluate(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what is scored: gate's and development text, and after each fifth win the vault's.

    Also the control: whether the round's synthetic text helps small students.
    """
    if view.candidate is None:
        raise Bug("a round is evaluated before it is trained")
    pieces = range(EVALUATION_PIECES)
    scored = (_scoring(view, domain, piece, piece, [GATE, DEV]) for piece in pieces)
    judged = (*scored, *control_items(view, domain, shape))
    if not is_shown_the_vault(view, domain):
        return judged
    return (*judged, _scoring(view, domain, EVALUATION_PIECES, 0, [VAULT], pieces=1))


def _scoring(
    view: RoundView,
    domain: "Domain",
    number: int,
    piece: int,
    parts: list[str],
    pieces: int = EVALUATION_PIECES,
) -> WorkItem:
    params = {
        "piece": piece,
        "pieces": pieces,
        "purged": sorted(view.purged),
        "parts": parts,
        "language": domain.language if GATE in parts else "",
        "completions": COMPLETIONS if GATE in parts and piece == 0 else 0,
        "seed": view.seed * 1000 + view.round,
        "may_be_empty": view.without_verdict,
        **domain.evaluation.limits(),
    }
    if view.base and GATE in parts:
        params["general_text"] = GENERAL_TEXT
        # A model that was brought fills gaps as often as a large one does: beside counting, which
        # stands for the generator where there is none, that says nothing and takes half the time.
        params["has_gaps"] = bool(generator_in_force(view, domain))
    inputs = {
        "model": ArtifactId(view.candidate or ""),
        "kept": view.completed[uniting(view)].outputs["kept"],
        **held_out(view, domain),
        **_contestants(view, domain),
    }
    if params["completions"]:
        params[ANSWERS] = {"cycle": view.cycle, "models": _answering(view)}
        inputs |= _answers_before(view)
        if view.questions:
            params[ASKED] = {"models": _answering(view), "known": grades_before(view)}
            inputs[QUESTIONS] = ArtifactId(view.questions)
    name = item_id(view.round, Phase.EVALUATE, number, view.candidate or "")
    return WorkItem(name, Phase.EVALUATE, "evaluate", params, inputs)


def _answering(view: RoundView) -> dict[str, str]:
    """Return whose answers stand beside the verdict, by their roles."""
    found = {CANDIDATE: view.candidate, INCUMBENT: incumbent(view), BASE: view.base}
    return {role: model for role, model in found.items() if model}


def _answers_before(view: RoundView) -> dict[str, ArtifactId]:
    """Return the newest answers of an earlier round: what still holds of them isn't written again.

    Nothing waits for them where nobody in reach has them.
    """
    for number in range(view.round - 1, 0, -1):
        begins = f"{item_id(number, Phase.EVALUATE, 0)}/"
        for name in sorted(view.completed, reverse=True):
            outputs = view.completed[name].outputs
            if name.startswith(begins) and ANSWERS in outputs:
                return {f"{PREVIOUS}{ANSWERS}": outputs[ANSWERS]}
    return {}


def grades_before(view: RoundView) -> dict[str, list[int]]:
    """Return how many own questions models answered rightly in earlier rounds, and of how many."""
    found: dict[str, list[int]] = {}
    for number in range(1, view.round):
        begins = f"{item_id(number, Phase.EVALUATE, 0)}/"
        for name in sorted(view.completed):
            if name.startswith(begins):
                grades = grades_in(view.completed[name].counts)
                found |= {model: [each.right, each.questions] for model, each in grades.items()}
    return found


def _contestants(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
    """Return whom the candidate is compared with; a baseline where somebody is missing."""
    found = {
        "incumbent": incumbent(view),
        "generator": generator_in_force(view, domain),
        "base": view.base,
    }
    return {name: ArtifactId(model) for name, model in found.items() if model}


def incumbent(view: RoundView) -> str:
    """Return the model that the candidate must beat, or nothing.

    The last student that was shown to be better; before there is one, the model that was brought.
    """
    return view.best_student or view.base


def generator_in_force(view: RoundView, domain: "Domain") -> str:
    """Return the model that the candidate must not be worse than, or nothing."""
    return main_generator(view.active_generators, view.named_generator, domain.generation.kinds)
