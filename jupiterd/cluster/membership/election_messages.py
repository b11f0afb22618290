"""What an election hears, and what it asks of its shell.

Owns the inputs and the effects. Doesn't know how either is decided (`election`) or sent.
"""

from dataclasses import dataclass

from jupiterd.ids import NodeId


@dataclass(frozen=True)
class PresenceChanged:
    """These other members aren't gone."""

    present: frozenset[NodeId]


@dataclass(frozen=True)
class BeatSeen:
    """A heartbeat came from this node itself."""

    node: NodeId
    term: int
    leader: NodeId | None
    """Whom it follows; itself where it leads; None or empty where it knows none."""
    stability: int
    members_alive: int
    """The sender's `Election.members_alive`."""
    runs_gang: bool
    is_fresh: bool = True
    """It tells how things are, not how they were before we were cut off from each other."""


@dataclass(frozen=True)
class PreVoteAnswered:
    """A node answered `RequestPreVote`; `term` is the highest it knows."""

    node: NodeId
    granted: bool
    term: int


@dataclass(frozen=True)
class TermSeen:
    """The ledger holds an entry of this term."""

    term: int
    is_of_others: bool = False
    """Another node has written it. Who leads goes above it, or what it records in the same term
    might count less than what is there."""


@dataclass(frozen=True)
class StabilityChanged:
    """This machine is steadier (greater) or less steady than before."""

    stability: int


@dataclass(frozen=True)
class GangChanged:
    """This node, as leader, runs a gang or doesn't."""

    runs_gang: bool


@dataclass(frozen=True)
class HandedOver:
    """The leader has left, and this node is to lead in its place; nobody else need ask."""

    successor: NodeId


@dataclass(frozen=True)
class Resigned:
    """The daemon stops: lead no more, and don't ask again."""


@dataclass(frozen=True)
class Reinstated:
    """What made this node resign doesn't hold any more."""


@dataclass(frozen=True)
class StorageFailed:
    """A term couldn't be written: what came after `PersistTerm` wasn't done."""


@dataclass(frozen=True)
class StorageRecovered:
    """The highest term is on disk after all."""


@dataclass(frozen=True)
class Woke:
    """The loop stood still for so long that others may have elected somebody meanwhile."""

    late_s: float


@dataclass(frozen=True)
class ElectionTicked:
    """Time has passed; wanted at `Election.wake_at`, and no harm at any other time."""


ElectionInput = (
    PresenceChanged
    | BeatSeen
    | PreVoteAnswered
    | TermSeen
    | StabilityChanged
    | GangChanged
    | HandedOver
    | Resigned
    | Reinstated
    | StorageFailed
    | StorageRecovered
    | Woke
    | ElectionTicked
)


@dataclass(frozen=True)
class PersistTerm:
    """Write the term to disk before doing what comes after."""

    term: int


@dataclass(frozen=True)
class RequestPreVote:
    """Ask each of these nodes for its pre-vote."""

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
    """Another node leads."""

    leader: NodeId
    term: int
    reason: str


Effect = PersistTerm | RequestPreVote | BecomeLeader | StepDown | Follow
