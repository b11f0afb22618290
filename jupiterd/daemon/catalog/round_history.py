"""What the ledger says of a cycle's rounds that are over, as far as promotions are concerned.

Owns finding it among the facts. What follows from it is `cycle.generation`'s: `promotion` says who
writes, and `promoted_models` who is promoted where no text is to be generated.
"""

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import RoundCommitted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.generator import generator_from
from jupiterd.cycle.generation.promoted_models import PromotedModels, promoted_models_after
from jupiterd.cycle.generation.promotion import (
    AcceptanceStats,
    AcceptanceTable,
    ActiveGenerators,
    PastRound,
    PromotionRules,
    active_generators_after,
)
from jupiterd.cycle.runs.recorded_settings import NAMED_GENERATOR, base_of
from jupiterd.daemon.catalog.gate_history import judged
from jupiterd.errors import Bug
from jupiterd.protocol.frames import Scalar

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain


def active_generators_of(
    cycle: CycleState, domain: "Domain", rounds: Sequence[RoundCommitted] | None = None
) -> ActiveGenerators:
    """Return which students are in force after the rounds that are over, or after the first ones.

    Args:
        cycle: a cycle that was started.
        domain: its domain.
        rounds: those that count; None: all of the canonical line.
    """
    if cycle.started is None:
        raise Bug("a cycle that was never started has no generators")
    named = generator_from(cycle.started.generator)
    settings = cycle.started.settings
    # The model that the cycle began with is replaced by what became of it, once that is promoted,
    # unless people wanted it.
    is_base = named is not None and named.artifact == base_of(settings) != ""
    is_base = is_base and not settings.get(NAMED_GENERATOR)
    rules = PromotionRules(
        domain.generation.kinds,
        domain.gate.margin_bpb,
        has_named=named is not None and not is_base,
    )
    over = cycle.rounds if rounds is None else rounds
    return active_generators_after([_past(cycle, each) for each in over], rules)


def promoted_models_of(cycle: CycleState, domain: "Domain") -> PromotedModels:
    """Return which students are promoted after the rounds that are over.

    domain: the cycle's, which wants no generated text; else whoever writes is the promoted one
    """
    rounds = [_past(cycle, each) for each in cycle.rounds]
    return promoted_models_after(rounds, domain.gate.margin_bpb)


def acceptance_in(cycle: CycleState, round_number: int) -> AcceptanceTable:
    """Return what came of a round's prompts."""
    found: dict[str, dict[str, AcceptanceStats]] = {}
    for done in cycle.completed_in(round_number, Phase.GENERATE).values():
        if "template" in done.summary:
            _add(found.setdefault(str(done.summary["template"]), {}), done)
    return found


def _recorded_acceptance(cycle: CycleState, round_number: int) -> AcceptanceTable | None:
    """Return what came of a round's prompts; None where there is text, and nobody knows whose."""
    found = acceptance_in(cycle, round_number)
    generated = cycle.completed_in(round_number, Phase.GENERATE).values()
    has_text = any("samples" in done.outputs for done in generated)
    return None if has_text and not found else found


def _add(by: dict[str, AcceptanceStats], done: WorkCompleted) -> None:
    writer = str(done.summary["generator"])
    before = by.get(writer, AcceptanceStats(0, 0))
    by[writer] = AcceptanceStats(
        before.prompts + whole_count(done.counts, "prompts"),
        before.samples + whole_count(done.counts, "samples"),
    )


def _past(cycle: CycleState, done: RoundCommitted) -> PastRound:
    found = judged(cycle, done.round, done.final_checkpoint)
    summary = {} if found is None else found.summary
    steered = cycle.steered_after(done.round)
    appointed = [fact for fact in steered if fact.is_promoted]
    return PastRound(
        number=done.round,
        candidate=done.final_checkpoint,
        verdict=done.verdict,
        teaches=bool(summary.get("teaches")),
        worse_bpb=_worse_bpb(summary),
        acceptance=_recorded_acceptance(cycle, done.round),
        trained_on=_writers_trained_on(cycle, done.round),
        dismissed=tuple(fact.student for fact in steered if not fact.is_promoted),
        appointed=appointed[0].student if appointed else "",
        appointments=[fact.student for fact in sorted(appointed, key=attrgetter("edit"))],
    )


def _writers_trained_on(cycle: CycleState, round_number: int) -> frozenset[str]:
    """Return who wrote in a round, if anything that was generated was packed in it."""
    packed = cycle.completed_in(round_number, Phase.PACK).values()
    if not any(done.counts.get("synthetic_documents") for done in packed):
        return frozenset()
    return frozenset(who for by in acceptance_in(cycle, round_number).values() for who in by)


def _worse_bpb(summary: Mapping[str, Scalar]) -> float | None:
    """Return how much worse the candidate is than the incumbent, where that is known.

    It is measured on the gate's text where no development text is held out.
    """
    for candidate, incumbent in (("dev_bpb", "dev_incumbent_bpb"), ("val_bpb", "incumbent_bpb")):
        ours, theirs = summary.get(candidate), summary.get(incumbent)
        if isinstance(ours, float) and isinstance(theirs, float) and math.isfinite(theirs):
            return ours - theirs
    return None
