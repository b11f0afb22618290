"""The items that judge a candidate by its scores.

Owns what the gate is shown. Doesn't judge (`cycle.gate`).
"""

from typing import TYPE_CHECKING

from jupiterd.cycle.phases.collect import holdout_version
from jupiterd.cycle.phases.evaluate import EVALUATION_PIECES, generator_in_force
from jupiterd.cycle.phases.looks import is_shown_the_vault
from jupiterd.cycle.phases.proxies import (
    runs_of_round,
    synthetic_share,
    teaching_items,
    teaching_told,
)
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.split import GATE
from jupiterd.cycle.work import Phase, WorkItem
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain import Domain
    from jupiterd.cycle.plan import ModelShape


def gate(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what judges the scores; once more where that would promote and more is to be seen.

    That is the vault, and how the candidate's text teaches small students.
    """
    first = _judging(view, domain, 0, {})
    taught = teaching_items(view, domain, shape)
    is_shown = is_shown_the_vault(view, domain)
    if not taught and not is_shown:
        return (first,)
    if any(item.id not in view.completed for item in taught):
        return (first, *taught)
    return (first, *taught, _judging(view, domain, 1, _vault(view) if is_shown else {}))


def _vault(view: RoundView) -> dict[str, ArtifactId]:
    seen = item_id(view.round, Phase.EVALUATE, EVALUATION_PIECES, view.trained or "")
    return {"vault.0": view.completed[seen].outputs["scores"]}


def _judging(
    view: RoundView, domain: "Domain", number: int, vault: dict[str, ArtifactId]
) -> WorkItem:
    scores = {
        f"scores.{piece}": view.completed[
            item_id(view.round, Phase.EVALUATE, piece, view.trained or "")
        ].outputs["scores"]
        for piece in range(EVALUATION_PIECES)
    }
    scores |= vault | runs_of_round(view, domain, last=number > 0)
    params = {
        "gate": domain.gate.model_dump(mode="json"),
        "holdout": domain.holdout.model_dump(mode="json"),
        "holdout_version": holdout_version(view, domain),
        "parts": [GATE],
        "look": view.looks + 1,
        "cycle": view.cycle,
        "seed": view.seed,
        "candidate": view.trained,
        "incumbent": view.student,
        "generator": generator_in_force(view, domain),
        "round": view.round,
        "synthetic_share": synthetic_share(view, domain).reason,
        "teaching": teaching_told(view, domain, last=number > 0),
        "scores": scores,
    }
    name = item_id(view.round, Phase.GATE, number, view.trained or "")
    return WorkItem(name, Phase.GATE, "gate", params, scores)
