"""Which line of a cycle counts: the command that lets it lead through another leaf.

Owns its checks and what it records; it runs at the leader. Doesn't know how a line is found
(`progress_tree`).
"""

from typing import Any

from jupiterd.cluster.facts.facts import BranchPinned, CycleStateSet, Fact
from jupiterd.cluster.ledger.cycle_state import STOPPED, CycleState
from jupiterd.cluster.ledger.progress_tree import Leaf
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cluster.values.branch_names import branch_name
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import ConflictError, NotFoundError
from jupiterd.ids import CycleId, short
from jupiterd.protocol.commands.cycle_commands import SwitchBranch

SWITCHED = "another branch of it was chosen"


async def switch_branch(
    term: Term, artifacts: ArtifactCache, command: SwitchBranch
) -> dict[str, Any]:
    """Pin a cycle's line to a leaf, or with an empty leaf leave it to the heaviest again.

    A switch starts no work: a cycle that has rounds left on the line chosen is stopped.

    Raises:
        ConflictError: the cycle is running.
        NotFoundError: no such cycle or leaf, or nobody in reach has the leaf's checkpoint.
    """
    cycle_id, leaf = CycleId(command.cycle), command.leaf
    cycle = _stopped_cycle(term.state, cycle_id)
    if leaf:
        await _check_in_reach(artifacts, _leaf_of(cycle, cycle_id, leaf))
    if leaf != cycle.pinned:
        await term.record(*_facts(cycle, cycle_id, leaf))
    return {"cycle": cycle_id, **_end_of_line(term.cycle(cycle_id), cycle_id)}


def _stopped_cycle(state: State, cycle_id: CycleId) -> CycleState:
    cycle = state.cycles.get(cycle_id)
    if cycle is None:
        raise NotFoundError(f"no cycle is called {cycle_id}", "jupiterctl cluster branches")
    if not cycle.has_nothing_to_do:
        raise ConflictError(
            f"cycle {short(cycle_id)} is running on the line that counts now",
            f"stop it first: jupiterctl cycle stop {short(cycle_id)}",
        )
    return cycle


def _leaf_of(cycle: CycleState, cycle_id: CycleId, leaf: str) -> Leaf:
    found = next((each for each in cycle.leaves() if each.key == leaf), None)
    if found is None:
        raise NotFoundError(
            f"no branch is called {branch_name(cycle_id, leaf)}",
            "jupiterctl cluster branches shows them",
        )
    return found


async def _check_in_reach(artifacts: ArtifactCache, leaf: Leaf) -> None:
    artifact = leaf.checkpoint.artifact
    if not await artifacts.is_in_reach(artifact):
        raise NotFoundError(
            f"no node that can be reached holds checkpoint {short(artifact)}",
            "start the machine that made it, and try again",
        )


def _facts(cycle: CycleState, cycle_id: CycleId, leaf: str) -> list[Fact]:
    pin = BranchPinned(cycle_id, leaf, edit_after(cycle.pin_edit))
    chosen = next((each for each in cycle.leaves() if each.key == leaf), None)
    wanted = 0 if cycle.begun is None else cycle.rounds_wanted
    if chosen is None or chosen.rounds >= wanted or cycle.wanted == STOPPED:
        return [pin]
    return [pin, CycleStateSet(cycle_id, STOPPED, SWITCHED, edit_after(cycle.wanted_edit))]


def _end_of_line(cycle: CycleState, cycle_id: CycleId) -> dict[str, Any]:
    canonical = next((leaf for leaf in cycle.leaves() if not leaf.is_suspended), None)
    return {
        "branch": None if canonical is None else branch_name(cycle_id, canonical.key),
        "leaf": None if canonical is None else canonical.key,
        "rounds": cycle.rounds_committed,
        "pinned": bool(cycle.pinned),
    }
