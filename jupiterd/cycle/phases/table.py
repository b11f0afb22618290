"""What a round needs next: the table of phases.

Owns the order of phases. Doesn't know nodes, processes or the ledger: it is shown what is done and
says what is to be done. Whoever asks, whenever, gets the same answer, so killing anything at any
time and asking again leads to the same data.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.phases.collect import collect
from jupiterd.cycle.phases.counting_verdict import verdict_item
from jupiterd.cycle.phases.evaluate import evaluate
from jupiterd.cycle.phases.filter import filter_
from jupiterd.cycle.phases.gate import gate
from jupiterd.cycle.phases.generate import generate
from jupiterd.cycle.phases.pack import pack, trained_in
from jupiterd.cycle.phases.steps import CloseRound, RunItems, Step
from jupiterd.cycle.phases.view import RoundView, item_id

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape


def next_step(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[Step, str]:
    """Return what the round needs next, with the reason.

    A round that is packed has its data, also where an earlier one is trained again and another
    generator came of it: what it was made of may be gone.
    """
    is_packed = item_id(view.round, Phase.PACK, 0) in view.completed
    for phase, items_of in _ITEMS.items():
        if is_packed and phase in _OF_DATA:
            continue
        if phase is Phase.EVALUATE and view.candidate is None:
            return trained_in(view.round, view.completed), "the round's sequences are packed"
        items = items_of(view, domain, shape)
        undone = tuple(item for item in items if item.id not in view.completed)
        if undone:
            step = RunItems(phase, undone, len(items))
            return step, f"{len(undone)} of {len(items)} items are open"
    judged = verdict_item(view.round, view.candidate or "", view.completed)
    return CloseRound(view.completed[judged]), "the gate has decided"


def skip_reason(
    view_round: int, generator: str, phase: Phase, *, has_templates: bool = True
) -> str:
    """Say why a phase has nothing to do in this round; empty when it has."""
    if phase is not Phase.GENERATE or generator:
        return ""
    if view_round == 1:
        return "round 1 trains on real data alone"
    if not has_templates:
        return "the domain has no templates, so all rounds use real data alone"
    return "no generator was promoted, so this round uses real data alone"


_ITEMS: Mapping[Phase, "Callable[[RoundView, Domain, ModelShape], tuple[WorkItem, ...]]"] = {
    Phase.COLLECT: collect,
    Phase.GENERATE: generate,
    Phase.FILTER: filter_,
    Phase.PACK: pack,
    Phase.EVALUATE: evaluate,
    Phase.GATE: gate,
}
"""The items of every phase but training, which is a gang's work; in the order of a round."""

_OF_DATA = frozenset({Phase.COLLECT, Phase.GENERATE, Phase.FILTER, Phase.PACK})
