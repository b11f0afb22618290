"""The items by which a judge is heard, where the gate's statistics are tied.

Owns these items, when they are due, and what the gate is told of them. Doesn't know the rule by
which a judge decides (`cycle.gate.tie_break`), nor how anybody is asked (workers).

    r2/gate/judge/write/CANDIDATE    both students go on from development text; planted pairs
    r2/gate/judge/ask/CANDIDATE      the judge is asked about them

They read development text and never the gate's: that is looked at once, by the test of bits per
byte, and the vault never.
"""

from typing import TYPE_CHECKING, Any, Final

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.generation_options import WITHOUT, seed_of
from jupiterd.cycle.phases.collect import held_out
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.ids import ArtifactId, short

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain

JUDGE: Final = "judge"
"""What stands in the ids of these items after the phase."""

ASKING: Final = "ask_judge"
"""The task that asks a judge."""

PAIRS: Final = 200
"""Of answers, as far as there are documents: of a student that is preferred in 60 % of the pairs
that are decided, so many show it with a chance of about 70 % at the first look."""

PLANTED: Final = 120
"""A judge that is right in 90 % of pairs is heard with a chance of 95 % or more."""

NEW_TOKENS: Final = 64
"""A student writes for each answer at most."""


def judge_items(view: RoundView, domain: "Domain") -> list[WorkItem]:
    """Return what has a judge asked, where it may break a tie; the asking follows the writing."""
    if not is_due(view):
        return []
    writing = _writing(view, domain)
    written = view.completed.get(writing.id)
    if written is None or not _has_pairs(written):
        return [writing]
    return [writing, _asking(view, domain, written)]


def is_due(view: RoundView) -> bool:
    """Say whether a judge's word is all that is left, and there is somebody to compare with."""
    first = view.completed.get(item_id(view.round, Phase.GATE, 0, view.candidate or ""))
    is_tied = first is not None and first.summary.get("tied") is True
    return is_tied and view.judge is not None and not _incomparable(view)


def judge_params(view: RoundView, *, was_due: bool) -> dict[str, str]:
    """Return what the gate is told of the judge; nothing where none is named.

    was_due: the scores were tied, and whoever could be asked was
    """
    if view.judge is None:
        return {}
    why_not = _why_not(view) if was_due else _incomparable(view)
    params = {"name": view.judge.name, "id": view.judge.id, "why_not": why_not}
    return {name: text for name, text in params.items() if text}


def judge_answers(view: RoundView) -> dict[str, ArtifactId]:
    """Return what a judge said of this candidate, as an input of the gate; or nothing."""
    result = view.completed.get(_id(view, "ask"))
    return {} if result is None or not result.outputs else {JUDGE: result.outputs["pairs"]}


def _why_not(view: RoundView) -> str:
    written = view.completed.get(_id(view, "write"))
    if written is not None and not written.counts.get("planted_pairs"):
        return "there is too little development text to make pairs of"
    if written is not None and not written.counts.get("answer_pairs"):
        return "what the two students write is too short to be compared, or the same"
    result = view.completed.get(_id(view, "ask"))
    reason = "" if result is None else str(result.summary.get(WITHOUT, ""))
    return reason and f"the judge couldn't be had: {reason}"


def _incomparable(view: RoundView) -> str:
    if not view.best_student:
        return "there is no last student to compare its answers with"
    is_student = view.judge is not None and view.judge.artifact in {
        view.candidate,
        view.best_student,
    }
    return "the judge is one of the two students" if is_student else ""


def _has_pairs(written: WorkResult) -> bool:
    return bool(written.counts.get("planted_pairs") and written.counts.get("answer_pairs"))


def _id(view: RoundView, what: str) -> str:
    return f"r{view.round}/{Phase.GATE}/{JUDGE}/{what}/{short(view.candidate or '')}"


def _writing(view: RoundView, domain: "Domain") -> WorkItem:
    generation = domain.generation
    params: dict[str, Any] = {
        "engine": generation.engine,
        "language": domain.language,
        "purged": sorted(view.purged),
        "pairs": PAIRS,
        "planted": PLANTED,
        "max_tokens": NEW_TOKENS,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "seed": seed_of(f"{view.seed}/{view.round}/{JUDGE}", 0),
        "limits": domain.evaluation.limits(),
    }
    inputs = {
        "model": ArtifactId(view.candidate or ""),
        "incumbent": ArtifactId(view.best_student),
        **held_out(view, domain),
    }
    return WorkItem(_id(view, "write"), Phase.GATE, "write_pairs", params, inputs)


def _asking(view: RoundView, domain: "Domain", written: WorkResult) -> WorkItem:
    judge = view.judge or Generator("")
    server = {"server": judge.to_plain()} if judge.url else {}
    model = {"model": ArtifactId(judge.artifact)} if judge.artifact else {}
    params = {"judge": judge.id, "engine": domain.generation.engine, **server}
    inputs = {"pairs": written.outputs["pairs"], **model}
    return WorkItem(_id(view, "ask"), Phase.GATE, ASKING, params, inputs)
