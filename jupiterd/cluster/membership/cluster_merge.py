"""Two clusters that have work become one: what is to be recorded, and who moves where.

Owns these rules. Doesn't know how a ledger travels, or what people are asked.

The cluster that goes on records again, by its own leader, every fact in force of the one that it
absorbs: the two ledgers stay apart, and what is agreed doesn't. A node of the absorbed cluster
leaves it only when `owed` says that nothing in force in its own ledger is missing from the other
one. So it doesn't matter who dies when, and whoever was away brings what it has when it returns.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.cluster.facts.attempt_facts import AttemptAdopted, AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.facts.fact_wire import to_wire
from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    BranchPinned,
    BranchSuspended,
    CheckpointCommitted,
    ClusterFounded,
    ClusterMerged,
    ClusterRenamed,
    CycleFailed,
    CycleStarted,
    CycleStateSet,
    DataRequested,
    Fact,
    ManifestFrozen,
    NodeAdmitted,
    NodeRemoved,
    OuterStepAbandoned,
    PairingWindowLocked,
    PairingWindowSet,
    RoleAssigned,
    RolePinned,
    SourcePurged,
    TokenIssued,
    TokenWithdrawn,
    TrainingStarted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.facts.lifecycle_facts import CycleExtended, CycleRevived, FailureDismissed
from jupiterd.cluster.facts.phase_facts import PhaseApproved, PhaseRedone, SettingChanged
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.lww_registers import canonical_bytes, fact_hash
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.admission import Summary
from jupiterd.ids import ClusterId, NodeId, short

MAX_FACTS_BYTES = 32 << 10
"""How much goes into one entry; a fact that is larger goes alone."""

_OF_ITS_CLUSTER = (
    ClusterFounded,
    ClusterRenamed,
    PairingWindowLocked,
    NodeAdmitted,
    NodeRemoved,
    RoleAssigned,
    TokenIssued,
    TokenWithdrawn,
    PairingWindowSet,
)
"""Facts about the absorbed cluster itself: its name, door and tokens go with it."""

_OF_TRUSTED_MEMBERS = (AlarmDismissed, ClusterMerged, SourcePurged, StudentSteered)
"""Facts that count for nothing where their author wasn't trusted: nor are they taken along."""

_COMPETES_BY: Mapping[type[Fact], tuple[str, ...]] = {
    CycleStarted: ("cycle",),
    DataRequested: ("cycle",),
    TrainingStarted: ("cycle",),
    CycleStateSet: ("cycle",),
    CycleFailed: ("cycle",),
    CycleRevived: ("cycle",),
    CycleExtended: ("cycle",),
    FailureDismissed: ("cycle",),
    AlarmDismissed: ("key",),
    BranchPinned: ("cycle",),
    BranchSuspended: ("cycle", "leaf"),
    WorkCompleted: ("cycle", "round", "item"),
    ManifestFrozen: ("cycle", "round", "redo"),
    PhaseApproved: ("cycle", "round", "phase", "redo"),
    PhaseRedone: ("cycle", "round", "phase", "redo"),
    SettingChanged: ("cycle", "setting", "from_round"),
    AttemptOpened: ("cycle", "attempt"),
    AttemptAdopted: ("cycle", "attempt"),
    AttemptClosed: ("cycle", "attempt"),
    OuterStepAbandoned: ("cycle", "step"),
    CheckpointCommitted: ("cycle", "artifact"),
    VerdictReached: ("cycle", "round", "candidate"),
    StudentSteered: ("cycle", "after_round", "student"),
    RolePinned: ("node",),
    SourcePurged: ("domain", "cycle", "source"),
}
"""Kind -> what it is in force for, as `State` has it; every other kind competes with nothing."""


def absorbed_by(state: State, cluster: ClusterId) -> frozenset[ClusterId]:
    """Return the clusters that have become part of this one."""
    return frozenset(merge.absorbed for merge in state.merges) - {cluster}


def has_agreed(state: State, cluster: ClusterId, into: ClusterId) -> bool:
    """Say whether people of this cluster want it to become part of another."""
    return any((merge.absorbed, merge.into) == (cluster, into) for merge in state.merges)


def leads_us(ours: Summary, theirs: Summary) -> bool:
    """Say whether our cluster goes on as theirs; of two that absorbed each other the lesser id."""
    if ours.cluster == theirs.cluster or ours.cluster not in theirs.absorbed:
        return False
    return theirs.cluster not in ours.absorbed or theirs.cluster < ours.cluster


def owed(ledger: Ledger, brought: Ledger) -> list[Fact]:
    """Return what a cluster must record so that nothing in force in another is lost.

    Nothing is owed where that has been done.
    """
    return [
        *_merge_of(ledger, brought),
        *_removals(ledger, brought),
        *_admissions(ledger.state, brought),
        *_missing(ledger.state, brought.state),
    ]


def taken_along(state: State) -> list[Fact]:
    """Return what is in force in a cluster, but for what is about that cluster itself."""
    return [fact for fact in _missing(State(), state) if not isinstance(fact, ClusterMerged)]


def removed_there(state: State) -> frozenset[NodeId]:
    """Return the keys that a cluster has removed, or barred because another one had."""
    known = {fact.node for fact in state.roster.admissions()}
    return frozenset(known - set(state.members)) | state.barred


def in_entries(facts: list[Fact]) -> Iterator[list[Fact]]:
    """Cut facts into as many as fit into one entry, in their order."""
    chosen: list[Fact] = []
    size_bytes = 0
    for fact in facts:
        fact_bytes = len(canonical_bytes(to_wire(fact)))
        if chosen and size_bytes + fact_bytes > MAX_FACTS_BYTES:
            yield chosen
            chosen, size_bytes = [], 0
        chosen.append(fact)
        size_bytes += fact_bytes
    if chosen:
        yield chosen


def _merge_of(ledger: Ledger, brought: Ledger) -> list[Fact]:
    """Return the merge itself, unless it is recorded with every key that was removed there."""
    state, cluster = ledger.state, brought.cluster
    unheard = removed_there(brought.state) - removed_there(state) - set(state.members)
    if cluster in absorbed_by(state, ledger.cluster) and not unheard:
        return []
    return [ClusterMerged(cluster, ledger.cluster, tuple(sorted(unheard)))]


def _removals(ledger: Ledger, brought: Ledger) -> list[Fact]:
    """Who was removed there is removed here too, and knows no token in force any more."""
    state = ledger.state
    gone = sorted(removed_there(brought.state) & set(state.members))
    reason = f"who was removed with cluster {short(brought.cluster)} knew it"
    return [
        *(
            NodeRemoved(node, state.roster.admissions_of(node), ledger.tips_of(node))
            for node in gone
        ),
        *(TokenWithdrawn(token, reason) for token in state.tokens if gone),
    ]


def _admissions(state: State, brought: Ledger) -> list[Fact]:
    """Who is a member there is one here, unless it was ever removed here; and trusted as there."""
    reason, trusted = f"came with cluster {short(brought.cluster)}", brought.state.roster.trusted
    return [
        NodeAdmitted(
            node, member.name, member.certificate_pem, reason if node in trusted else WALKED_IN
        )
        for node, member in sorted(brought.state.members.items())
        if node not in state.members
        and not (state.roster.was_removed(node) or node in state.barred)
    ]


def _missing(state: State, brought: State) -> list[Fact]:
    """Return the facts in force there that nothing of the same kind and key stands for here."""
    held: dict[Any, int] = {}
    for fact in _counting(state):
        key, rank = _place_of(fact)
        held[key] = max(rank, held.get(key, rank))
    found: list[Fact] = []
    for fact in _counting(brought):
        key, rank = _place_of(fact)
        is_bound = isinstance(fact, _OF_ITS_CLUSTER) or _is_outlived(fact, state, brought)
        if not is_bound and held.get(key, -1) < rank:
            found.append(fact)
    return found


def _counting(state: State) -> Iterator[Fact]:
    """Yield the facts in force, in the order of their entries."""
    for order, fact in sorted(state.placed(), key=lambda placed: placed[0]):
        if not isinstance(fact, _OF_TRUSTED_MEMBERS) or state.roster.may_decide(order):
            yield fact


def _is_outlived(fact: Fact, state: State, brought: State) -> bool:
    """Say whether an attempt's adoption or end counts no more: recorded anew it would be the last.

    Nor does a failure that people went on from, or that they did so before it failed once more.
    """
    match fact:
        case CycleFailed(cycle):
            return brought.cycles[cycle].failed is None
        case CycleRevived(cycle):
            return brought.cycles[cycle].failed is not None
        case AttemptAdopted(cycle, attempt):
            known = (side.cycles[cycle] for side in (state, brought) if cycle in side.cycles)
            return any(attempt in side.attempts_closed for side in known)
        case AttemptClosed(cycle, attempt):
            return attempt not in brought.cycles[cycle].attempts_closed
        case _:
            return False


def _place_of(fact: Fact) -> tuple[object, int]:
    """Return what a fact competes for, and its edit number: the greater one stands for both."""
    names = _COMPETES_BY.get(type(fact))
    key = fact_hash(fact) if names is None else tuple(getattr(fact, name) for name in names)
    rank = fact.is_final if isinstance(fact, CheckpointCommitted) else getattr(fact, "edit", 0)
    return (type(fact).__name__, key), int(rank)
