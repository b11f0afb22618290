"""The items that judge a candidate by its scores.

Owns what the gate is shown. Doesn't judge (`cycle.gate`).
"""

from typing import TYPE_CHECKING, Any

from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.data.split import GATE
from jupiterd.cycle.gate.baseline import CHOICE
from jupiterd.cycle.gate.record import TEST
from jupiterd.cycle.phases.collect import holdout_version
from jupiterd.cycle.phases.counting_verdict import FIRST, LAST, WITH_JUDGE, is_shown_the_vault
from jupiterd.cycle.phases.evaluate import EVALUATION_PIECES, generator_in_force, incumbent
from jupiterd.cycle.phases.judge import judge_answers, judge_items, judge_params
from jupiterd.cycle.phases.proxies import (
    runs_of_round,
    synthetic_share,
    teaching_items,
    teaching_params,
)
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape


def gate(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what judges the scores; once more where more is to be seen.

    Where the scores are tied that is what a judge says, if the domain names one; where the
    candidate would be promoted, the vault, and how its text teaches small students.
    """
    if not (items := judge_items(view, domain)):
        return _with_what_follows(view, domain, shape, (_judging(view, domain, FIRST, {}),))
    judged = (_judging(view, domain, FIRST, {}), *items)
    if any(item.id not in view.completed for item in judged):
        return judged
    judged = (*judged, _judging(view, domain, WITH_JUDGE, {}))
    return _with_what_follows(view, domain, shape, judged)


def _with_what_follows(
    view: RoundView, domain: "Domain", shape: "ModelShape", before: tuple[WorkItem, ...]
) -> tuple[WorkItem, ...]:
    """Return the items with those that are due where the last of them would promote."""
    taught = teaching_items(view, domain, shape)
    is_shown = is_shown_the_vault(view, domain)
    if not taught and not is_shown:
        return before
    if any(item.id not in view.completed for item in taught):
        return (*before, *taught)
    return (*before, *taught, _judging(view, domain, LAST, _vault(view) if is_shown else {}))


def _vault(view: RoundView) -> dict[str, ArtifactId]:
    seen = item_id(view.round, Phase.EVALUATE, EVALUATION_PIECES, view.candidate or "")
    return {"vault.0": view.completed[seen].outputs["scores"]}


def _judging(
    view: RoundView, domain: "Domain", number: int, vault: dict[str, ArtifactId]
) -> WorkItem:
    scores = {
        f"scores.{piece}": view.completed[
            item_id(view.round, Phase.EVALUATE, piece, view.candidate or "")
        ].outputs["scores"]
        for piece in range(EVALUATION_PIECES)
    }
    scores |= vault | runs_of_round(view, domain, last=number == LAST)
    if number != FIRST:
        scores |= judge_answers(view)
    params = {
        "gate": domain.gate.model_dump(mode="json"),
        "holdout": _holdout_params(domain),
        "holdout_version": holdout_version(view, domain),
        "parts": [GATE],
        "test": TEST,
        "baseline": CHOICE,
        "look": view.looks + 1,
        "cycle": view.cycle,
        "seed": view.seed,
        "candidate": view.candidate,
        "incumbent": incumbent(view),
        "generator": generator_in_force(view, domain),
        "round": view.round,
        "templates": list(domain.generation.kinds),
        "synthetic_share": synthetic_share(view, domain).reason,
        "teaching": teaching_params(view, domain, last=number == LAST),
        "scores": scores,
    }
    if not params["generator"]:
        params["nobody_generates"] = True
    if view.base:
        params["base"] = view.base
    if judge := judge_params(view, was_due=number != FIRST):
        params["judge"] = judge
    name = item_id(view.round, Phase.GATE, number, view.candidate or "")
    return WorkItem(name, Phase.GATE, "gate", params, scores)


def _holdout_params(domain: "Domain") -> dict[str, Any]:
    """Return the domain's holdout, with how much the gate needs where the file doesn't say."""
    rules = domain.holdout_rules()
    least = {"min_documents": rules.least_documents, "min_clusters": rules.least_clusters}
    return domain.holdout.model_dump(mode="json", exclude_none=True) | least
