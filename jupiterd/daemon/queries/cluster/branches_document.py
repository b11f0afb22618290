"""The document of `cluster branches`: every line of every cycle, and which of them count.

Owns its keys. Reads the ledger and what lies here; changes nothing.
"""

from typing import Any

from jupiterd.cluster.facts.facts import RoundCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.progress_tree import Leaf
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.branch_names import branch_name
from jupiterd.document_schema import SCHEMA
from jupiterd.ids import CycleId, NodeId
from jupiterd.store.artifacts import ArtifactStore


def branches_document(state: State, store: ArtifactStore) -> dict[str, Any]:
    """Return the leaves of all cycles, the newest cycle and its canonical leaf first.

    Those of islands are parts of their run, and nobody's choice.
    """
    cycles = {cycle: each for cycle, each in state.cycles.items() if is_whole(each)}
    ordered = sorted(cycles, key=lambda cycle: (cycles[cycle].start_order, cycle), reverse=True)
    return {
        "schema": SCHEMA,
        "branches": [row for cycle in ordered for row in _rows(state, store, cycle)],
        "pins": [_pin(cycle, cycles[cycle]) for cycle in ordered if cycles[cycle].pinned],
    }


def _pin(cycle: CycleId, state: CycleState) -> dict[str, Any]:
    return {
        "cycle": cycle,
        "branch": branch_name(cycle, state.pinned),
        "leaf": state.pinned,
        "known": any(leaf.is_pinned for leaf in state.leaves()),
    }


def _rows(state: State, store: ArtifactStore, cycle: CycleId) -> list[dict[str, Any]]:
    whole = state.cycles[cycle]
    return [
        {
            **_row(state, store, cycle, leaf),
            "domain": whole.label or None,
            "canonical": number == 0 and not leaf.is_suspended,
            "pinned": leaf.is_pinned,
            "parked": leaf.is_suspended,
        }
        for number, leaf in enumerate(whole.leaves())
    ]


def _row(state: State, store: ArtifactStore, cycle: CycleId, leaf: Leaf) -> dict[str, Any]:
    last, (term, writer, _, _) = leaf.checkpoint, leaf.order
    known = state.roster.known(NodeId(writer))
    return {
        "name": branch_name(cycle, leaf.key),
        "cycle": cycle,
        "leaf": leaf.key,
        "kind": "round" if isinstance(leaf.fact, RoundCommitted) else "checkpoint",
        "rounds": leaf.rounds,
        "round": last.round,
        "step": last.step,
        "tokens": last.tokens,
        "loss": last.loss,
        "checkpoint": last.artifact,
        "held_here": store.holds(last.artifact),
        "written_by": {"node": writer, "name": None if known is None else known.name},
        "term": term,
    }
