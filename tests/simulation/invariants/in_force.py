"""Whether recorded facts are in the agreed state: set-like ones always, progress somewhere in it.

Owns where each kind of fact must be found. Doesn't know entries or who holds them.
"""

from collections.abc import Sequence

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    Fact,
    RoundCommitted,
    TokenIssued,
    TokenWithdrawn,
    WorkCompleted,
)
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.ledger.progress_tree import weights_of
from jupiterd.cluster.ledger.state import State
from tests.simulation.node.recording import CYCLE

Progress = CheckpointCommitted | RoundCommitted


def what_is_not_in_force(state: State, facts: Sequence[Fact]) -> str:
    """Say which of these facts the state doesn't have; empty where it has them all."""
    cycle = state.cycles.get(CYCLE) or CycleState()
    named = _named(cycle) if any(isinstance(fact, Progress) for fact in facts) else set[str]()
    for fact in facts:
        if not _is_in_force(state, cycle, named, fact):
            return f"{fact} was recorded and is nowhere in the state"
    return ""


def _is_in_force(state: State, cycle: CycleState, named: set[str], fact: Fact) -> bool:
    match fact:
        case WorkCompleted():
            return (fact.round, fact.item) in cycle.completed
        case AttemptOpened():
            return fact.attempt in cycle.attempts_opened
        case AttemptClosed():
            return fact.attempt in cycle.attempts_closed
        case TokenIssued():
            return fact.token in state.issued_tokens
        case TokenWithdrawn():
            return fact.token not in state.tokens
        case CheckpointCommitted():
            return fact.artifact in named or _waits(cycle, named, fact)
        case RoundCommitted():
            return fact_hash(fact) in named or fact.final_checkpoint not in named
        case _:
            return True


def _waits(cycle: CycleState, named: set[str], fact: CheckpointCommitted) -> bool:
    """Say whether what a checkpoint hangs on isn't here (yet): the one before it, or its round."""
    if fact.parent not in named:
        return fact.parent != ""
    placed = [each for _, each in cycle.placed()]
    before = [f for f in placed if isinstance(f, CheckpointCommitted) and f.artifact == fact.parent]
    rounds = [f for f in placed if isinstance(f, RoundCommitted)]
    is_end = any(f.final_checkpoint == fact.parent for f in rounds)
    return all(f.round < fact.round for f in before) and not is_end


def _named(cycle: CycleState) -> set[str]:
    """Return what lies on the canonical line or on a named branch: artifacts, hashes of rounds.

    What hangs on something that no disk has kept waits outside the tree.
    """
    placed = [fact for _, fact in cycle.placed()]
    checkpoints = {f.artifact: f for f in placed if isinstance(f, CheckpointCommitted)}
    rounds = [f for f in placed if isinstance(f, RoundCommitted)]
    leaves = [*cycle.canonical_branch()[-1:], *cycle.other_leaves()]
    found = {fact_hash(leaf) for leaf in leaves if isinstance(leaf, RoundCommitted)}
    for leaf in leaves:
        above = weights_of(leaf)
        while above in checkpoints and above not in found:
            found.add(above)
            above = checkpoints[above].parent
    children = {(f.parent, f.round) for f in checkpoints.values() if f.artifact in found}
    found |= {fact_hash(f) for f in rounds if (f.final_checkpoint, f.round + 1) in children}
    return found
