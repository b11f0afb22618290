"""The document of what a phase has made: what people look at before they let a cycle go on.

Owns its keys. The samples are asked of whoever holds them (`trace_everywhere`); changes nothing.
"""

from typing import TYPE_CHECKING, Any

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import WorkCompleted
from jupiterd.cycle.changed_settings import told, with_changes
from jupiterd.cycle.domain import parse_domain
from jupiterd.cycle.generation.usual_templates import domain_with
from jupiterd.cycle.lineage import Sample
from jupiterd.cycle.phases.boundary import Place
from jupiterd.cycle.work import Phase
from jupiterd.daemon.counting_work import work_that_counts
from jupiterd.daemon.named_cycles import Begun, cycles_called, newest_first
from jupiterd.daemon.pausing import current_round, place_of
from jupiterd.daemon.sample_trace import MANY, SOME
from jupiterd.daemon.status_document import shown
from jupiterd.daemon.steering_answers import redoable
from jupiterd.daemon.trace_everywhere import Trace
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

KEPT = ("kept", "samples", "train")
"""Names of outputs whose samples a phase let through; of several the first that there is."""

DROPPED = "dropped"


async def review_document(node: "Node", wanted: str) -> dict[str, Any]:
    """Return what a phase has made: CYCLE/ROUND/PHASE, each of which may be left out.

    Without a phase the one that ended last is meant, with a few samples; of one that is named many
    are told. Without a cycle the shown one is meant.

    Raises:
        NotFoundError: there is no such cycle, or nothing has ended yet.
        UsageError: there are no such phases.
    """
    cycle_id, _, named = wanted.partition("/")
    cycle, begun = _meant(node, cycle_id)
    place = _named_place(named) if named else place_of(cycle)
    if place is None:
        raise NotFoundError("no phase of the cycle has ended yet", "jupiterctl cycle status")
    number, phase = place
    most = MANY if named else SOME
    rows = shown(node, cycle)["phases"]
    row = next((r for r in rows if (r["round"], r["phase"]) == (number, str(phase))), {})
    as_written = parse_domain(begun.domain_yaml, f"{begun.domain}.yaml")
    domain = domain_with(as_written, begun.generator)
    domain = with_changes(domain, cycle.steering.settings(current_round(cycle)))
    return {
        "schema": SCHEMA,
        "review": {
            "cycle": begun.cycle,
            "domain": begun.domain,
            **row,
            "round": number,
            "phase": str(phase),
            "kept_samples": await _some(node, cycle, place, KEPT, most),
            "dropped_samples": await _some(node, cycle, place, (DROPPED,), most),
            "settings": told(domain),
            "redoable": [str(each) for each in redoable(cycle)],
        },
    }


def _meant(node: "Node", wanted: str) -> Begun:
    known = newest_first(node.journal.state)
    found = cycles_called(sorted(known, key=lambda pair: not pair[0].goes_on), wanted)
    if not found:
        raise NotFoundError("there is no such cycle", "jupiterctl cycle list")
    return found[0]


def _named_place(named: str) -> Place:
    number, _, phase = named.partition("/")
    if not number.isdecimal() or phase not in set(Phase):
        raise UsageError(f"{named} is no ROUND/PHASE", f"phases are {', '.join(Phase)}")
    return int(number), Phase(phase)


async def _some(
    node: "Node", cycle: CycleState, place: Place, names: tuple[str, ...], most: int
) -> list[dict[str, Any]]:
    """Return a few samples of the first batch of a phase that there is."""
    trace = Trace(node)
    for batch in _batches(cycle, place, names):
        if samples := await trace.some_of(batch, most):
            return [_plain(sample, reason) for sample, reason in samples]
    return []


def _batches(cycle: CycleState, place: Place, names: tuple[str, ...]) -> list[ArtifactId]:
    """Return the batches of a phase; of several steps those that the last one has made."""
    number, phase = place
    made = work_that_counts(
        fact
        for fact in cycle.completed.values()
        if (fact.round, fact.phase) == (number, str(phase)) and _is_united(phase, fact)
    )
    ordered = sorted(made, key=lambda fact: fact.item)
    return [fact.outputs[name] for name in names for fact in ordered if name in fact.outputs]


def _is_united(phase: Phase, fact: WorkCompleted) -> bool:
    last = {Phase.COLLECT: "train", Phase.FILTER: "kept"}.get(phase)
    return last is None or last in fact.outputs


def _plain(sample: Sample, reason: str) -> dict[str, Any]:
    return {
        "id": sample.id,
        "kind": sample.kind,
        "source_uri": sample.source_uri,
        "reason": reason,
        "text": sample.text,
    }
