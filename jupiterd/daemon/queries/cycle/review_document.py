"""The document of what a phase has made: what people look at before they let a cycle go on.

Owns its keys. Asks the nodes that hold the samples for them (`cluster_trace`); changes nothing.
"""

import math
from typing import Any

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.changed_settings import current_values, with_changes
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.phases.boundary import Place
from jupiterd.daemon.catalog.cycle_lookup import meant_cycle
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.daemon.catalog.pause_facts import current_round, place_of, redoable
from jupiterd.daemon.queries.cluster.cluster_trace import Trace, trace_of
from jupiterd.daemon.queries.cluster.local_trace import MANY, SOME
from jupiterd.daemon.queries.cluster.status_document import shown
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId

KEPT = ("kept", "samples", "train")
"""Names of outputs whose samples a phase let through; of several the first that there is."""

DROPPED = ("dropped", "refused")
"""Names of those whose samples it didn't; `refused` are a generator's answers."""

WITH_SAMPLES = (Phase.COLLECT, Phase.GENERATE, Phase.FILTER)

MOST_BATCHES = 8
"""Number of batches of a phase from which samples are taken."""


async def review_document(sources: DocumentSources, wanted: str) -> dict[str, Any]:
    """Return what a phase has made: CYCLE/ROUND/PHASE, each of which may be left out.

    Without a phase the one that ended last is meant, with a few samples, of the newest phase that
    has some; of a named one many are shown. Without a cycle the shown one is meant.

    Raises:
        NotFoundError: there is no such cycle, or nothing has ended yet.
        UsageError: there are no such phases.
    """
    cycle_id, _, named = wanted.partition("/")
    cycle, begun = meant_cycle(sources.replica.state, cycle_id, first_going_on=True)
    place = _named_place(named) if named else place_of(cycle)
    if place is None:
        raise NotFoundError("no phase of the cycle has ended yet", "jupiterctl cycle status")
    number, phase = place
    most, sampled = (MANY, place) if named else (SOME, _newest_with_samples(cycle, place))
    trace = trace_of(sources)
    rows = shown(sources, cycle)["phases"]
    row = next((r for r in rows if (r["round"], r["phase"]) == (number, str(phase))), {})
    at_start = parse_domain(begun.domain_yaml, f"{begun.domain}.yaml")
    domain = with_changes(at_start, cycle.steering.settings(current_round(cycle)))
    return {
        "schema": SCHEMA,
        "review": {
            "cycle": begun.cycle,
            "domain": begun.domain,
            **row,
            "round": number,
            "phase": str(phase),
            "samples_round": sampled[0],
            "samples_phase": str(sampled[1]),
            "kept_samples": await _some(trace, cycle, sampled, KEPT, most),
            "dropped_samples": await _some(trace, cycle, sampled, DROPPED, most),
            "settings": current_values(domain),
            "redoable": [str(each) for each in redoable(cycle)],
        },
    }


def _named_place(named: str) -> Place:
    number, _, phase = named.partition("/")
    if not number.isdecimal() or phase not in set(Phase):
        raise UsageError(f"{named} is no ROUND/PHASE", f"phases are {', '.join(Phase)}")
    return int(number), Phase(phase)


async def _some(
    trace: Trace, cycle: CycleState, place: Place, names: tuple[str, ...], most: int
) -> list[dict[str, Any]]:
    """Return a few samples of a phase, of each of its batches some; others where it has many."""
    found: list[dict[str, Any]] = []
    batches = _batches(cycle, place, names)
    chosen = batches[:: math.ceil(len(batches) / MOST_BATCHES) or 1]
    for behind, batch in enumerate(chosen):
        share = math.ceil((most - len(found)) / (len(chosen) - behind))
        samples = await trace.some_of(batch, share) if share else []
        found += [_plain(sample, reason) for sample, reason in samples]
    return found


def _newest_with_samples(cycle: CycleState, place: Place) -> Place:
    """Return the newest phase up to that one that has samples; that one, where none has."""
    order = list(Phase)
    places = {(fact.round, Phase(fact.phase)) for fact in cycle.completed.values()}
    newest = sorted(places, key=lambda each: (each[0], order.index(each[1])), reverse=True)
    with_samples = (
        each for each in newest if each[1] in WITH_SAMPLES and _batches(cycle, each, KEPT)
    )
    return next(with_samples, place)


def _batches(cycle: CycleState, place: Place, names: tuple[str, ...]) -> list[ArtifactId]:
    """Return the batches of a phase; of several steps those that the last one has made."""
    number, phase = place
    work = work_that_counts(
        fact
        for fact in cycle.completed.values()
        if (fact.round, fact.phase) == (number, str(phase)) and _is_united(phase, fact)
    )
    ordered = sorted(work, key=lambda fact: fact.item)
    return [fact.outputs[name] for name in names for fact in ordered if name in fact.outputs]


def _is_united(phase: Phase, fact: WorkCompleted) -> bool:
    last = {Phase.COLLECT: "train", Phase.FILTER: "kept"}.get(phase)
    return last is None or last in fact.outputs


def _plain(sample: Sample, reason: str) -> dict[str, Any]:
    return {
        "id": sample.id,
        "kind": sample.kind,
        "template": sample.template,
        "source_uri": sample.source_uri,
        "reason": reason,
        "text": sample.text,
        "messages": [dict(each) for each in sample.messages],
    }
