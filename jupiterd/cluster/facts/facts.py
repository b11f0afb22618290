"""The durable, past-tense records that a ledger holds.

Owns what each fact says. Doesn't know who writes it, its form on the wire (`fact_wire`), what it
leads to (`state`), or how entries chain (`ledger`).

There are four kinds: set facts (union), settings and commands (greatest edit number wins),
progress (names its parent) and withdrawals.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from jupiterd.cluster.facts.attempt_facts import AttemptAdopted, AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.facts.lifecycle_facts import LifecycleFact
from jupiterd.cluster.facts.outer_step_facts import OuterStepAbandoned, OuterStepTaken
from jupiterd.cluster.facts.phase_facts import SteeringFact
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.ids import ArtifactId, ClusterId, CycleId, NodeId
from jupiterd.protocol.frames import Scalar


@dataclass(frozen=True)
class ClusterFounded:
    """Set fact: the first entry of every cluster."""

    TYPE: ClassVar[str] = "ClusterFounded"
    VERSION: ClassVar[int] = 1
    label: str


WALKED_IN: Final = "it walked in through the open door"
"""Why a member was admitted for whom nobody has said yes, see `roster`."""


@dataclass(frozen=True)
class NodeAdmitted:
    """Set fact: this key is a member; one more of it, for another reason, says yes to it."""

    TYPE: ClassVar[str] = "NodeAdmitted"
    VERSION: ClassVar[int] = 1
    node: NodeId
    name: str
    certificate_pem: bytes
    reason: str
    token: str = ""
    """Id of the join token that let it in, or empty."""

    @property
    def walked_in(self) -> bool:
        """Say whether nobody has said yes to it here."""
        return self.reason == WALKED_IN


@dataclass(frozen=True)
class TokenIssued:
    """Set fact: whoever proves that it knows this secret is let in, whatever the window."""

    TYPE: ClassVar[str] = "TokenIssued"
    VERSION: ClassVar[int] = 1
    token: str
    """Its id, 16 hex digits."""
    secret: str
    """32 hex digits; every member may know it, for each may lead."""
    uses: int
    """How many nodes it lets in; 0 for any number."""


@dataclass(frozen=True)
class TokenWithdrawn:
    """Withdrawal: that token lets nobody in any more."""

    TYPE: ClassVar[str] = "TokenWithdrawn"
    VERSION: ClassVar[int] = 1
    token: str
    reason: str


@dataclass(frozen=True)
class NodeRemoved:
    """Withdrawal: this key is no longer a member, wherever it was admitted by these entries."""

    TYPE: ClassVar[str] = "NodeRemoved"
    VERSION: ClassVar[int] = 1
    node: NodeId
    admissions: tuple[str, ...]
    """Entries that admitted it: node/ledger uuid/index of each."""
    last_seen: Mapping[str, int]
    """Its ledger uuids -> the last entry that was known; what it admits beyond doesn't count."""


@dataclass(frozen=True)
class PairingWindowLocked:
    """Set fact, beside what first shuts the door: whom others than trusted members had let in."""

    TYPE: ClassVar[str] = "DoorShut"
    VERSION: ClassVar[int] = 1
    admissions: tuple[str, ...]
    """The admissions by such members, see `roster.admission_name`: none that turns up later counts,
    whatever its entry says of when it was written."""


@dataclass(frozen=True)
class ClusterRenamed:
    """Setting: the cluster's name for people."""

    TYPE: ClassVar[str] = "ClusterRenamed"
    VERSION: ClassVar[int] = 1
    label: str
    edit: int


@dataclass(frozen=True)
class ClusterMerged:
    """Set fact: one cluster becomes part of another.

    In the absorbed cluster it records consent; in the other one, the merge itself.
    """

    TYPE: ClassVar[str] = "ClusterMerged"
    VERSION: ClassVar[int] = 1
    absorbed: ClusterId
    into: ClusterId
    removed: tuple[NodeId, ...] = ()
    """Keys that were removed there: they are let in here no more either."""


@dataclass(frozen=True)
class RolePinned:
    """Setting, one for each node: the role that people want it to have, or empty for none."""

    TYPE: ClassVar[str] = "RolePinned"
    VERSION: ClassVar[int] = 1
    node: NodeId
    role: str
    edit: int


@dataclass(frozen=True)
class RoleAssigned:
    """Setting, one for each node: what the leader wants it to do, and why."""

    TYPE: ClassVar[str] = "RoleAssigned"
    VERSION: ClassVar[int] = 1
    node: NodeId
    role: str
    reason: str
    edit: int


@dataclass(frozen=True)
class PairingWindowSet:
    """Setting: the pairing window; closing beats a concurrent opening."""

    TYPE: ClassVar[str] = "WindowSet"
    VERSION: ClassVar[int] = 1
    is_open: bool
    edit: int


@dataclass(frozen=True)
class CycleStarted:
    """Set fact: somebody asked for a cycle, with everything that decides how it goes."""

    TYPE: ClassVar[str] = "CycleStarted"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    domain: str
    domain_yaml: str
    rounds: int
    size: str
    seed: int
    started_at: str
    """ISO 8601, UTC; for display and for the provenance of samples, never for ordering."""
    model_yaml: str = ""
    """The size preset, so that every leader plans the same training."""
    engine: str = "auto"
    """What people asked for: auto, torch or mlx."""
    settings: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """Whether islands train its rounds, and how they exchange, see `cycle.runs.run_settings`; and
    who may train them, where people say so: `nodes` (ids, with commas between), `max_ranks`."""
    generator: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """The generator that people named, see `cycle.domain.generator`; empty: the last student
    that was promoted."""
    interactive: bool = False
    """Whether it waits at the end of each phase until somebody has answered."""
    judge: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """The model that may break a tie of the gate, described as a generator is; empty: none."""
    without_verdict: bool = False
    """Whether it trains where there is too little text for a verdict."""


@dataclass(frozen=True)
class DataRequested:
    """Set fact: somebody asked for text to be made into a data set; its run may train on it too."""

    TYPE: ClassVar[str] = "DataRequested"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    """Id of the run, which stands where a cycle's does."""
    name: str
    source: Mapping[str, Scalar]
    """What is read and how it is cut, see `cycle.runs.run_settings`."""
    node: str
    """The node on whose disk the text lies, or empty where any may read it."""
    tokenizer: str
    """Artifact id of the tokenizer that was given, or empty: one is trained."""
    started_at: str
    asked_at: str = ""
    """The node on which somebody asked for it; what older builds recorded lacks it."""


@dataclass(frozen=True)
class TrainingStarted:
    """Set fact: somebody asked for a training run, with everything that decides how it goes."""

    TYPE: ClassVar[str] = "TrainingStarted"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    """Id of the run, which stands where a cycle's does."""
    name: str
    data: CycleId
    """The run that makes, or made, the data set; its own id where it does so itself."""
    model: str
    """What people called it."""
    model_yaml: str
    engine: str
    nodes: tuple[NodeId, ...]
    """Who may train; empty for everybody."""
    settings: Mapping[str, Scalar]
    """Everything else that was asked for, see `cycle.runs.run_settings`."""
    started_at: str
    parent: str = ""
    """The run, or the cycle, of which this one trains an island, or empty."""
    parent_round: int = 1
    """Of the cycle."""


@dataclass(frozen=True)
class CycleStateSet:
    """Command, one for each cycle: run, pause or stop."""

    TYPE: ClassVar[str] = "CycleStateSet"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    wanted: str
    """`running`, `paused` or `stopped`."""
    reason: str
    edit: int
    node: str = ""
    """The node where a pause was asked for, or that led where a phase's end asked; or empty."""
    at: str = ""
    """When it was paused: ISO 8601, UTC; for display, never for ordering. Or empty."""


@dataclass(frozen=True)
class CycleFailed:
    """Set fact: the cycle can't go on by itself, and why; the last one in the order counts."""

    TYPE: ClassVar[str] = "CycleFailed"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class WorkCompleted:
    """Set fact: an item of a phase is done; the first in the order is in force."""

    TYPE: ClassVar[str] = "WorkCompleted"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    round: int
    phase: str
    item: str
    node: NodeId
    outputs: Mapping[str, ArtifactId]
    counts: Mapping[str, float] = field(default_factory=dict[str, float])
    summary: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class ManifestFrozen:
    """Set fact: the shards that a round trains on; the first in the order is in force."""

    TYPE: ClassVar[str] = "ManifestFrozen"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"redo": "attempt"}
    cycle: CycleId
    round: int
    parent: str
    """The leaf of the canonical line that the round starts from, or empty."""
    tokenizer: ArtifactId
    shards: tuple[ArtifactId, ...]
    sequences: int
    tokens: int
    redo: int = 0
    """How often the round's packing had begun anew."""
    ranks: int = 0
    """Of who could train it then, in one gang, where the text decides how many sequences a step has
    (`training.tuning_batch`): each has one of them. 0: it doesn't, or by an older build."""


@dataclass(frozen=True)
class CheckpointCommitted:
    """Progress: weights that contain the manifest's sequences [0, cursor) of this round."""

    TYPE: ClassVar[str] = "CheckpointCommitted"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"attempt": "epoch"}
    LATER: ClassVar[Mapping[str, Any]] = {"on_trunk": False, "began_with": "", "horizon": {}}
    """Fields that came later: see `lww_registers.fact_hash`."""
    cycle: CycleId
    round: int
    parent: str
    """Artifact id of the checkpoint before it on the line, or empty for the first."""
    artifact: ArtifactId
    attempt: int
    step: int
    """Steps of this round."""
    tokens: int
    """Tokens that its weights were trained on since the cycle began."""
    cursor: int
    loss: float
    is_final: bool
    """The round's last: training is done."""
    on_trunk: bool = False
    """Its rate hasn't begun to fall: a later round may go on from here, see `trunk`."""
    began_with: str = ""
    """Artifact id of the checkpoint that its gang had loaded: groups apart may each have opened an
    attempt of that number. Empty: weights were drawn, or an older version wrote this."""
    horizon: Mapping[str, float] = field(default_factory=dict[str, float])
    """What losses on held-out text had decided by then of where training ends, see
    `cycle.training.horizon`; empty where there is no such text, or an older version wrote this."""


@dataclass(frozen=True)
class BranchPinned:
    """Setting, one for each cycle: makes the branch of this leaf canonical; empty: the heaviest.

    The other branches remain in the ledger.
    """

    TYPE: ClassVar[str] = "LinePinned"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    leaf: str
    """A checkpoint's artifact id or a round commit's hash; empty takes the pin away."""
    edit: int


@dataclass(frozen=True)
class BranchSuspended:
    """Setting, one for each checkpoint: a line that ends in it doesn't compete, or does again.

    Nothing is withdrawn by it: nobody in reach has the checkpoint, and somebody may come with it.
    """

    TYPE: ClassVar[str] = "LineParked"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"is_suspended": "is_parked"}
    cycle: CycleId
    leaf: str
    """Artifact id of the checkpoint that is missing."""
    is_suspended: bool
    edit: int
    reason: str = ""
    """Empty where nobody in reach has it."""


@dataclass(frozen=True)
class VerdictReached:
    """Set fact: what the gate said of a round's candidate; of one the first is in force."""

    TYPE: ClassVar[str] = "VerdictReached"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"generator_in_force": "incumbent"}
    cycle: CycleId
    round: int
    verdict: str
    """PROMOTE, HOLD, REJECT or ABSTAIN."""
    reason: str
    val_bpb: float
    artifact: ArtifactId
    """The folder with verdict.json."""
    candidate: ArtifactId
    generator_in_force: str
    """Artifact id of the model that wrote most of the round's generated text, than which the
    candidate must not be worse; empty where a baseline stood in for it."""


@dataclass(frozen=True)
class RoundCommitted:
    """Progress: a round is over."""

    TYPE: ClassVar[str] = "RoundCommitted"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {
        "final_checkpoint": "parent",
        "newest_generator": "promoted",
    }
    cycle: CycleId
    round: int
    final_checkpoint: str
    """Artifact id of the weights that the round ended with."""
    verdict: str
    newest_generator: str
    """Artifact id of the student that came into force last and generates, or empty."""


@dataclass(frozen=True)
class SourcePurged:
    """Withdrawal, a predicate: nothing of this source is trained on, nor made from it.

    It also hits samples that arrive later. Models that were trained on it stay.
    """

    TYPE: ClassVar[str] = "SourcePurged"
    VERSION: ClassVar[int] = 1
    domain: str
    source: str
    """Its name in the domain file, or an address: everything below it."""
    cycle: str = ""
    """The only cycle that is meant; empty: every one of the domain, later ones too."""


@dataclass(frozen=True)
class UnknownFact:
    """A fact of a newer version: kept and relayed as it came, not folded."""

    type: str
    version: int
    body: Mapping[str, Any]


KnownFact = (
    ClusterFounded
    | NodeAdmitted
    | NodeRemoved
    | PairingWindowLocked
    | TokenIssued
    | TokenWithdrawn
    | ClusterRenamed
    | ClusterMerged
    | RolePinned
    | RoleAssigned
    | PairingWindowSet
    | CycleStarted
    | DataRequested
    | TrainingStarted
    | CycleStateSet
    | CycleFailed
    | WorkCompleted
    | ManifestFrozen
    | AttemptOpened
    | AttemptAdopted
    | AttemptClosed
    | CheckpointCommitted
    | OuterStepTaken
    | OuterStepAbandoned
    | BranchPinned
    | BranchSuspended
    | VerdictReached
    | StudentSteered
    | RoundCommitted
    | SourcePurged
    | SteeringFact
    | LifecycleFact
    | AlarmDismissed
)
Fact = KnownFact | UnknownFact
