"""The inputs of the election and the effects that it returns to its shell.

Owns these types. Doesn't know how the election decides (`election`) or how a message is sent.
"""

from dataclasses import dataclass

from jupiterd.ids import NodeId


@dataclass(frozen=True)
class PresenceChanged:
    """The other members that are alive or suspect changed."""

    present: frozenset[NodeId]


@dataclass(frozen=True)
class BeatSeen:
    """This node received a heartbeat that `node` itself sent."""

    node: NodeId
    term: int
    leader: NodeId | None
    """The leader that it follows; itself if it leads; None or empty if it knows none."""
    stability: int
    members_alive: int
    """The sender's `Election.members_alive`."""
    runs_gang: bool
    is_fresh: bool = True
    """False: it was sent long ago, for instance before the two nodes lost their connection."""


@dataclass(frozen=True)
class PreVoteAnswered:
    """A node answered `RequestPreVote`; `term` is the highest that it knows."""

    node: NodeId
    granted: bool
    term: int


@dataclass(frozen=True)
class TermSeen:
    """The ledger holds an entry of this term."""

    term: int
    is_of_others: bool = False
    """Another node wrote that entry. A leader then takes a higher term: of two entries of the same
    term, the other node's could take precedence over its own."""


@dataclass(frozen=True)
class StabilityChanged:
    """This machine's stability changed; greater is steadier."""

    stability: int


@dataclass(frozen=True)
class GangChanged:
    """This node, as leader, started to run a gang or stopped."""

    runs_gang: bool


@dataclass(frozen=True)
class HandedOver:
    """The leader left and named `successor` to lead next; the other nodes wait for it."""

    successor: NodeId


@dataclass(frozen=True)
class Resigned:
    """The daemon stops: this node must neither lead nor request pre-votes."""


@dataclass(frozen=True)
class Reinstated:
    """The reason why this node resigned is over."""


@dataclass(frozen=True)
class StorageFailed:
    """The shell couldn't write a term and dropped the effects after `PersistTerm`."""


@dataclass(frozen=True)
class StorageRecovered:
    """The shell wrote the highest term to disk after an earlier failure."""


@dataclass(frozen=True)
class Woke:
    """The event loop stood still for `late_s`; others may have elected a leader meanwhile."""

    late_s: float


@dataclass(frozen=True)
class ElectionTicked:
    """Time passed. The shell must send it at `Election.wake_at`, and may send it at any time."""


OwnChange = (
    TermSeen
    | StabilityChanged
    | GangChanged
    | HandedOver
    | Resigned
    | Reinstated
    | StorageFailed
    | StorageRecovered
    | Woke
)
"""An input that is neither a heartbeat, an answer, a change of presence nor a tick."""

ElectionInput = PresenceChanged | BeatSeen | PreVoteAnswered | OwnChange | ElectionTicked


@dataclass(frozen=True)
class PersistTerm:
    """Write the term to disk before any effect that follows."""

    term: int


@dataclass(frozen=True)
class RequestPreVote:
    """Request a pre-vote from each of these nodes."""

    nodes: frozenset[NodeId]
    term: int


@dataclass(frozen=True)
class BecomeLeader:
    """Lead the group under this term."""

    term: int
    reason: str


@dataclass(frozen=True)
class StepDown:
    """Stop leading at once."""

    reason: str


@dataclass(frozen=True)
class Follow:
    """Follow another node, which leads."""

    leader: NodeId
    term: int
    reason: str


Effect = PersistTerm | RequestPreVote | BecomeLeader | StepDown | Follow
