"""How many of the domain's own questions a round's models answered rightly, as documents have it.

Owns the keys, and what the models are called. Reads the ledger alone.
"""

from typing import Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.view import item_id
from jupiterd.cycle.questions.round_grades import TROUBLE, grades_in, grades_text
from jupiterd.cycle.runs.recorded_settings import base_of


def own_questions_of_round(cycle: CycleState, number: int, candidate: str) -> dict[str, Any] | None:
    """Return the grades of a round's models; None: its cycle has no questions, or nobody asked.

    `text` says them in a sentence, `trouble` why some models weren't asked, or is None.
    """
    asked = cycle.completed.get((number, item_id(number, Phase.EVALUATE, 0, candidate)))
    if asked is None:
        return None
    grades, trouble = grades_in(asked.counts), str(asked.summary.get(TROUBLE, ""))
    if not grades and not trouble:
        return None
    base = "" if cycle.started is None else base_of(cycle.started.settings)
    others = [model for model in sorted(grades) if model not in {candidate, base}]
    roles = [
        ("the candidate", candidate),
        *(("the last student", model) for model in others),
        ("the model that was brought", base),
    ]
    return {
        "text": grades_text(grades, roles),
        "trouble": trouble or None,
        "models": {
            model: {
                "right": found.right, "questions": found.questions,
                "low": found.interval.low, "high": found.interval.high,
            }
            for model, found in sorted(grades.items())
        },
    }  # fmt: skip


def own_question_lines(found: dict[str, Any] | None) -> list[str]:
    """Return what stands below a verdict's reasons."""
    if found is None:
        return []
    trouble = found["trouble"]
    missing = [f"Your own questions weren't asked of all: {trouble}."] if trouble else []
    return ["", *filter(None, [found["text"]]), *missing]
