"""Makes ledger entries and facts for the tests of the cluster's pure cores."""

from collections.abc import Sequence

from jupiterd.cluster.facts.attempt_facts import AttemptAdopted, AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.facts.facts import (
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
    OuterStepTaken,
    PairingWindowLocked,
    PairingWindowSet,
    RoleAssigned,
    RolePinned,
    RoundCommitted,
    SourcePurged,
    TokenIssued,
    TokenWithdrawn,
    TrainingStarted,
    UnknownFact,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.facts.lifecycle_facts import CycleExtended, CycleRevived, FailureDismissed
from jupiterd.cluster.facts.phase_facts import PhaseApproved, PhaseRedone, SettingChanged
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.entry import Entry, EntryWriter, compose, parse, seal
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.ids import ArtifactId, ClusterId, CycleId, NodeId

CLUSTER = ClusterId("c" * 32)
CYCLE = CycleId("d" * 16)
NODES = tuple(NodeId(letter * 32) for letter in "abe")
SIGNATURE = b"nobody checks this one"


def admitted(node: NodeId) -> NodeAdmitted:
    return NodeAdmitted(node, f"name-{node[0]}", b"certificate of " + node.encode(), "window open")


def make_entry(
    ledger: Ledger,
    term: int,
    writer: EntryWriter,
    facts: Sequence[Fact],
    cluster: ClusterId = CLUSTER,
) -> Entry:
    """The writer's next entry, as `ledger` stands."""
    index, previous = ledger.chain_end(writer)
    return parse(seal(compose(cluster, term, writer, index, previous, facts), SIGNATURE))


def founded_ledger(writer: EntryWriter, others: Sequence[NodeId] = ()) -> Ledger:
    ledger = Ledger(CLUSTER)
    ledger.add(make_entry(ledger, 1, writer, [ClusterFounded("home"), admitted(writer.node)]))
    if others:
        ledger.add(make_entry(ledger, 1, writer, [admitted(node) for node in others]))
    return ledger


def started(rounds: int = 2) -> CycleStarted:
    return CycleStarted(CYCLE, "python", "name: python\n", rounds, "1m", 7, "2026-01-01T00:00:00Z")


def data_asked(name: str = "letters") -> DataRequested:
    source = {"kind": "folder", "path": "/letters", "vocab_size": 512}
    return DataRequested(CYCLE, name, source, NODES[0], "", "2026-01-01T00:00:00Z")


def training(name: str = "letters") -> TrainingStarted:
    settings = {"max_steps": 200, "seq_len": 64, "ranks": 2}
    return TrainingStarted(
        CYCLE, name, CYCLE, "1m", "size: 1m\n", "auto", (), settings, "2026-01-01T00:00:00Z"
    )


def commanded(wanted: str, edit: int, reason: str = "asked for") -> CycleStateSet:
    return CycleStateSet(CYCLE, wanted, reason, edit)


def paused(edit: int, node: NodeId = NODES[0]) -> CycleStateSet:
    return CycleStateSet(CYCLE, "paused", "asked for", edit, node, "2026-01-02T03:04:05+00:00")


def checkpoint(
    name: str, parent: str = "", round_number: int = 1, tokens: int = 100, is_final: bool = False
) -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, round_number, parent, ArtifactId(name), 1, 10, tokens, 5, 3.5, is_final
    )


def round_over(
    final_checkpoint: str, round_number: int = 1, promoted: str = "", verdict: str = "HOLD"
) -> RoundCommitted:
    return RoundCommitted(CYCLE, round_number, final_checkpoint, verdict, promoted)


def pinned(leaf: str, edit: int = 1) -> BranchPinned:
    return BranchPinned(CYCLE, leaf, edit)


def suspended(leaf: str, edit: int = 1, *, is_suspended: bool = True) -> BranchSuspended:
    return BranchSuspended(CYCLE, leaf, is_suspended, edit)


def opened(attempt: int, round_number: int = 1) -> AttemptOpened:
    return AttemptOpened(CYCLE, round_number, attempt, NODES[:2], "torch", "", 0)


def adopted(attempt: int) -> AttemptAdopted:
    return AttemptAdopted(CYCLE, attempt)


def closed(attempt: int) -> AttemptClosed:
    return AttemptClosed(CYCLE, attempt, "a rank died")


def judged(verdict: str, candidate: str, round_number: int = 1) -> VerdictReached:
    folder = ArtifactId("4" * 64)
    return VerdictReached(
        CYCLE, round_number, verdict, "by much", 2.5, folder, ArtifactId(candidate), ""
    )


def outer_step(
    number: int, parent: str = "", total_tokens: int = 0, steps: int = 30
) -> OuterStepTaken:
    island = CycleId("e" * 16)
    return OuterStepTaken(
        CYCLE,
        number,
        parent,
        (island,),
        (ArtifactId("5" * 64),),
        (960,),
        rate=0.5,
        momentum=0.9,
        total_tokens=total_tokens,
        first_step=30 * number,
        steps=steps,
        batches={island: 4},
        positions={island: "0-120"},
        cursor=120 * (number + 1),
        left_out={"f" * 16: "missing"},
    )


def work_done(item: str, node: NodeId = NODES[0], round_number: int = 1) -> WorkCompleted:
    return WorkCompleted(
        CYCLE, round_number, "filter", item, node, {"samples": ArtifactId("f" * 64)}, {"kept": 3.0}
    )


def redone(round_number: int, phase: str, attempt: int) -> PhaseRedone:
    order = ("collect", "generate", "filter", "pack", "train", "evaluate", "gate")
    return PhaseRedone(CYCLE, round_number, phase, order[order.index(phase) :], attempt)


def sample_facts() -> list[Fact]:
    """At least one of each kind, with every sort of contest between them."""
    return [
        ClusterFounded("home"),
        ClusterFounded("office"),
        *(admitted(node) for node in NODES),
        NodeAdmitted(NODES[0], "renamed", b"certificate", "token"),
        NodeRemoved(NODES[1], (f"{NODES[0]}/u1/1", f"{NODES[1]}/u2/2"), {"u1": 2}),
        NodeRemoved(NODES[0], (f"{NODES[0]}/u1/1", f"{NODES[2]}/u1/3"), {"u1": 1}),
        PairingWindowLocked((f"{NODES[1]}/u2/2/{NODES[2]}",)),
        PairingWindowLocked(()),
        ClusterRenamed("lab", 1),
        ClusterRenamed("attic", 1),
        ClusterMerged(ClusterId("1" * 32), CLUSTER),
        ClusterMerged(ClusterId("1" * 32), CLUSTER, (NODES[2],)),
        TokenIssued("1" * 16, "2" * 32, 1),
        TokenIssued("3" * 16, "4" * 32, 0),
        TokenWithdrawn("3" * 16, "it is a day old"),
        RolePinned(NODES[0], "idle", 1),
        RolePinned(NODES[0], "", 2),
        RoleAssigned(NODES[0], "trainer", "fast", 1),
        RoleAssigned(NODES[0], "generator", "slow", 2),
        RoleAssigned(NODES[0], "hybrid", "both", 2),
        PairingWindowSet(is_open=True, edit=1),
        PairingWindowSet(is_open=False, edit=1),
        PairingWindowSet(is_open=True, edit=2),
        started(),
        started(rounds=3),
        data_asked(),
        data_asked("poems"),
        training(),
        training("poems"),
        commanded("stopped", 1),
        commanded("running", 2),
        commanded("stopped", 2, "another"),
        paused(2),
        paused(2, NODES[1]),
        work_done("r1/filter/0"),
        work_done("r1/filter/0", NODES[1]),
        work_done("r1/filter/1"),
        ManifestFrozen(CYCLE, 1, "", ArtifactId("1" * 64), (ArtifactId("2" * 64),), 10, 1000),
        ManifestFrozen(CYCLE, 1, "", ArtifactId("1" * 64), (ArtifactId("3" * 64),), 12, 1200),
        opened(1),
        opened(2),
        adopted(1),
        adopted(2),
        closed(1),
        CycleFailed(CYCLE, "failed", "out of ideas", "start another"),
        CycleFailed(CYCLE, "disk-full", "no room", "make some"),
        AttemptClosed(CYCLE, 1, "closed twice"),
        checkpoint("k1"),
        checkpoint("k2", "k1", tokens=200),
        checkpoint("k2", "k1", tokens=200, is_final=True),
        checkpoint("x2", "k1", tokens=300),
        round_over("k2", promoted="m1", verdict="PROMOTE"),
        round_over("k2"),
        round_over("x2"),
        checkpoint("k3", "k2", round_number=2, tokens=400),
        outer_step(0),
        outer_step(1, fact_hash(outer_step(0)), 100),
        outer_step(1, fact_hash(outer_step(0)), 200),
        outer_step(5, "nobody knows it"),
        StudentSteered(CYCLE, 1, ArtifactId("c" * 64), is_promoted=False, edit=1),
        OuterStepAbandoned(CYCLE, fact_hash(outer_step(1, fact_hash(outer_step(0)), 200))),
        judged("HOLD", "k2"),
        judged("PROMOTE", "k2"),
        judged("REJECT", "x2"),
        pinned("x2"),
        pinned("k9"),
        pinned(fact_hash(round_over("k2")), 2),
        pinned("", 2),
        suspended("k3"),
        suspended("x2"),
        suspended("x2", 2, is_suspended=False),
        suspended("k2", 2),
        suspended("k2", 2, is_suspended=False),
        ManifestFrozen(CYCLE, 1, "", ArtifactId("1" * 64), (ArtifactId("4" * 64),), 9, 900, 1),
        PhaseApproved(CYCLE, 1, "filter", 0),
        PhaseApproved(CYCLE, 1, "filter", 1),
        redone(1, "filter", 1),
        redone(1, "filter", 2),
        work_done("r1/filter/0~1"),
        work_done("r1/filter/0~2", NODES[1]),
        SettingChanged(CYCLE, "mix_ratio.synthetic_share", "0.2", 1, 1),
        SettingChanged(CYCLE, "mix_ratio.synthetic_share", "0.3", 1, 1),
        SettingChanged(CYCLE, "mix_ratio.synthetic_share", "0.1", 2, 1),
        SourcePurged("python", "docs"),
        SourcePurged("python", "docs", CYCLE),
        SourcePurged("cooking", "https://example.org/"),
        CycleRevived(CYCLE),
        FailureDismissed(CYCLE),
        AlarmDismissed("gang-knocked:a", "1 try", is_over=False, edit=1),
        AlarmDismissed("node-gone:b", "", is_over=False, edit=1),
        AlarmDismissed("node-gone:b", "", is_over=True, edit=2),
        CycleExtended(CYCLE, 4, 1),
        CycleExtended(CYCLE, 3, 2),
        UnknownFact("LineBraided", 1, {"leaf": "k3"}),
    ]
