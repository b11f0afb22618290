"""Commands about who belongs to a cluster: its nodes, its window, its name, and other clusters.

Owns their fields. Doesn't know what they do. Pure.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.protocol.commands.command import Command


@dataclass(frozen=True, kw_only=True)
class OpenCluster(Command):
    """Let newcomers in for a while."""

    VERB: ClassVar[str] = "cluster.open"


@dataclass(frozen=True, kw_only=True)
class CloseCluster(Command):
    """Let nobody in."""

    VERB: ClassVar[str] = "cluster.close"


@dataclass(frozen=True, kw_only=True)
class RenameCluster(Command):
    """Give the cluster another name for people."""

    VERB: ClassVar[str] = "cluster.rename"

    name: str


@dataclass(frozen=True, kw_only=True)
class IssueToken(Command):
    """Make a join token."""

    VERB: ClassVar[str] = "cluster.token"

    uses: int = 1
    """How many newcomers it is for; 0: any number."""


@dataclass(frozen=True, kw_only=True)
class WithdrawToken(Command):
    """Let a token let in nobody any more."""

    VERB: ClassVar[str] = "cluster.withdraw"

    token: str
    """The beginning of its id."""


@dataclass(frozen=True, kw_only=True)
class MergeCluster(Command):
    """Let this cluster become part of another one."""

    VERB: ClassVar[str] = "cluster.merge"

    cluster: str
    """The other one's name, or the beginning of its id."""
    token: str = ""
    """Of the other one, where that is closed."""
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class LeaveCluster(Command):
    """Let the machine that is asked found a cluster of its own."""

    VERB: ClassVar[str] = "cluster.leave"

    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class HandOverLead(Command):
    """Have a leader to which nobody has said yes let a trusted member lead."""

    VERB: ClassVar[str] = "cluster.hand_over"


@dataclass(frozen=True, kw_only=True)
class ApproveNode(Command):
    """Let in a node that waits."""

    VERB: ClassVar[str] = "node.approve"

    node: str
    """Its name, or the beginning of its id."""
    words: str = ""
    """The four that it shows; empty: nothing is compared."""


@dataclass(frozen=True, kw_only=True)
class TrustNode(Command):
    """Say yes to a member that walked in."""

    VERB: ClassVar[str] = "node.trust"

    node: str
    because: str | None = None
    """What says so, where no person does."""


@dataclass(frozen=True, kw_only=True)
class RemoveNode(Command):
    """Take a node's membership away."""

    VERB: ClassVar[str] = "node.remove"

    node: str


@dataclass(frozen=True, kw_only=True)
class PinRole(Command):
    """Fix what a node does; `auto` leaves it to the leader."""

    VERB: ClassVar[str] = "node.role"

    node: str
    role: str
