"""The documents that `status` shows, and of it the cycle or the training run alone.

Owns their keys. Changes nothing.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.island_runs import counting_islands, is_whole
from jupiterd.cluster.ledger.state import CycleState, State
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.membership.pending_joins import PendingJoin
from jupiterd.cluster.values.machine_load import shown_load
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.daemon.catalog.cycle_lookup import meant_cycle
from jupiterd.daemon.leader.node_speed import speed_of
from jupiterd.daemon.queries.cluster.admission_document import admission_document, token_documents
from jupiterd.daemon.queries.cluster.health_document import dismissed_lines, health_lines
from jupiterd.daemon.queries.cluster.serving_document import serving_document
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.runtime.approval_words import spelled
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, CycleId, NodeId

if TYPE_CHECKING:
    from jupiterd.daemon.catalog.phase_rows import Settled

_IS_WHOLE = re.compile(r"[0-9a-f]{16}").fullmatch
"""Says whether a text is a cycle's whole id."""


def status_document(sources: DocumentSources) -> dict[str, Any]:
    """Return the whole status as this node sees it."""
    running, state = sources.view.running(), sources.replica.state
    terms = sources.view.admission_terms()
    nodes = [node_row(sources, member, running) for member in sorted(state.members)]
    door = admission_document(state, terms)
    alive = sum(document["state"] == Liveness.ALIVE for document in nodes)
    return {
        "schema": SCHEMA,
        "node": {
            "id": sources.view.own,
            "name": sources.view.name,
            "words": sources.approval.words or None,
        },
        "cluster": {
            "id": sources.replica.cluster,
            "name": sanitized_text(state.label) or None,
            "leader": sources.view.leader,
            "term": sources.view.term,
            "head": sources.replica.ledger.head(),
            "nodes_alive": alive,
            "nodes_total": len(nodes),
            "open": door["open"],
            "door": door,
            "tokens": token_documents(state, terms),
        },
        "nodes": [*nodes, *map(_newcomer, sources.view.waiting())],
        "cycle": current_cycle(sources),
        "train": current_training(sources),
        "fetches": sources.fetches.rows(now_s()),
        "refused": sources.refusals.to_plain(),
        "health": health_lines(sources),
        "dismissed": dismissed_lines(sources),
    }


def cycle_status_document(sources: DocumentSources, wanted: str) -> dict[str, Any]:
    """Return a cycle alone: the one named, or where none is, the running or latest one.

    A whole id that isn't known here yet is nothing: who started that cycle asks for it at once.

    Raises:
        NotFoundError: no cycle is called so.
        UsageError: several ids begin so.
    """
    if not wanted:
        return {"schema": SCHEMA, "cycle": current_cycle(sources)}
    state = sources.replica.state
    named = state.cycles.get(CycleId(wanted))
    if named is None and not _IS_WHOLE(wanted):
        named, _ = meant_cycle(state, wanted)
    is_known = named is not None and named.started is not None
    return {"schema": SCHEMA, "cycle": shown(sources, named) if named and is_known else None}


def train_document(sources: DocumentSources, run_id: str) -> dict[str, Any]:
    """Return a training run alone: the one named, else the running or latest one.

    run_id: its id, the beginning of one, or its name; of several so called the newest

    Raises:
        NotFoundError: none is called so. One that is known by its whole id may only not be here
            yet: the document is empty then.
        UsageError: several ids begin so.
    """
    if not run_id:
        return {"schema": SCHEMA, "train": current_training(sources)}
    run = sources.replica.state.cycles.get(CycleId(run_id))
    if run is None and not _IS_WHOLE(run_id):
        run = _run_called(sources.replica.state, run_id)
    is_known = run is not None and run.training is not None
    return {"schema": SCHEMA, "train": shown(sources, run) if run and is_known else None}


def _run_called(state: State, wanted: str) -> CycleState:
    runs = [run for run in state.cycles.values() if run.training is not None and is_whole(run)]
    newest_first = sorted(runs, key=attrgetter("start_order"), reverse=True)
    known = [
        Named(run, run.training.name, [run.training.cycle]) for run in newest_first if run.training
    ]
    if found := meant(known, wanted):
        return found[0]
    hint = f"the newest is {known[0].name}" if known else "none has been started"
    raise NotFoundError(f"no training run is called {wanted}", f"{hint}: jupiterctl train status")


def current_cycle(sources: DocumentSources) -> dict[str, Any] | None:
    """Return the running cycle's document, else a paused one's, else the latest one's; or None."""
    cycles = [cycle for cycle in sources.replica.state.cycles.values() if cycle.started is not None]
    latest = max(
        cycles,
        key=lambda cycle: (not cycle.has_nothing_to_do, cycle.goes_on, cycle.start_order),
        default=None,
    )
    return None if latest is None else shown(sources, latest)


def current_training(sources: DocumentSources) -> dict[str, Any] | None:
    """Return the running training run's document, else the latest one's; None where none is."""
    cycles = sources.replica.state.cycles.values()
    runs = [run for run in cycles if run.training is not None and is_whole(run)]
    latest = max(runs, key=lambda run: (not run.has_nothing_to_do, run.start_order), default=None)
    return None if latest is None else shown(sources, latest)


def shown(sources: DocumentSources, cycle: CycleState) -> dict[str, Any]:
    """Return the document of a cycle, a training run or a data set."""
    from jupiterd.daemon.queries.cycle.cycle_document import cycle_document  # with 60 modules more

    live = sources.view.live_progress(cycle.begun.cycle if cycle.begun else "")
    has_leader = sources.view.leader is not None
    own = cycle.begun.cycle if cycle.begun else CycleId("")
    islands = counting_islands(sources.replica.state.cycles, own)
    model = _model_path(sources, cycle)
    names = {member: fact.name for member, fact in sources.replica.state.members.items()}
    return cycle_document(
        cycle,
        live,
        model=model,
        has_leader=has_leader,
        islands=islands,
        names=names,
        settled=sources.replica.derived(_settled)[own],
    )


def _settled(_: State) -> "defaultdict[CycleId, Settled]":
    """Return the cache of rows of finished rounds, which lasts until the ledger changes."""
    return defaultdict(dict)


def _model_path(sources: DocumentSources, cycle: CycleState) -> str | None:
    """Return the folder of the newest model on this machine, as it was exported."""
    finals = [
        f for f in cycle.canonical_branch() if isinstance(f, CheckpointCommitted) and f.is_final
    ]
    for final in reversed(finals):
        folder = sources.exports.folder(cycle, final.round, final.artifact)
        if folder.is_dir():
            return str(folder)
    if cycle.training is not None:  # its path is printed at the end: the one that stays
        return None
    held = [
        f.artifact for f in finals if sources.artifact_cache.store.holds(ArtifactId(f.artifact))
    ]
    return str(sources.artifact_cache.store.path(ArtifactId(held[-1]))) if held else None


def _why_this_role(sources: DocumentSources, member: NodeId) -> str:
    role = sources.replica.state.roles.get(member)
    if role is None:
        return "the leader hasn't assigned a role yet"
    if sources.view.liveness(member) is Liveness.GONE:
        return "the role that it had before it went"
    return role.reason


def _newcomer(seen: PendingJoin) -> dict[str, Any]:
    words = spelled(seen.numbers)
    return {
        "id": seen.node,
        "name": seen.name,
        "state": "pending",
        "trusted": False,
        "role": None,
        "reason": f"waits to be let in: {words}",
        "words": words,
        "addresses": [],
        "links": [],
        "last_heard_s": None,
        "hardware": {},
        "contradictions": [],
        "load": {},
        "gpu_loads": [],
        "serving": [],
        "tokens_per_s": None,
        "step_lag": None,
        "rtt_s": None,
    }


def node_row(
    sources: DocumentSources, member: NodeId, running: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what is known of one member; running: the leader's telemetry of every phase."""
    state = sources.replica.state
    role = state.roles.get(member)
    hardware = sources.view.hardware_of(member)
    is_self = member == sources.view.own
    peer = sources.peers.get(member)
    speed = speed_of(member, running)
    admitted = state.members[member]
    return {
        "id": member,
        "name": sanitized_text(peer.name if peer is not None and peer.name else admitted.name),
        "state": str(sources.view.liveness(member)),
        "trusted": member in state.roster.trusted,
        "role": role.role if role is not None else "idle",
        "reason": _why_this_role(sources, member),
        "addresses": sources.view.addresses()
        if is_self
        else peer.shown_addresses()
        if peer
        else [],
        "links": peer.links.to_plain(now_s()) if peer is not None and not is_self else [],
        "last_heard_s": sources.view.last_heard_s(member),
        "hardware": hardware.to_plain() if hardware is not None else {},
        "contradictions": list(sources.cluster_file.contradictions(member)),
        "load": shown_load(sources.view.load_of(member)),
        "gpu_loads": [load.to_plain() for load in sources.view.gpu_loads_of(member)],
        "serving": serving_document(sources, member),
        "tokens_per_s": speed.tokens_per_s,
        "step_lag": speed.step_lag,
        "rtt_s": None if is_self or peer is None else _rounded(peer.beats.rtt_s),
    }


def _rounded(seconds: float | None) -> float | None:
    """Return a time to the microsecond."""
    return None if seconds is None else round(seconds, 6)
