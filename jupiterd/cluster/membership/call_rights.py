"""Who may call what on another node: a row for each call of the services that nodes offer.

Owns the table. The border lets strangers reach what the table opens to them; a node's services ask
for the rest. Doesn't know how a caller is told from another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Final


class CallerKind(StrEnum):
    """Who may call."""

    ANYBODY = "anybody with a key"
    MEMBER = "members"
    RANK = "members that have a rank in that attempt"
    """As its order says, which came from the leader."""
    LEADER = "the leader that this node follows"
    """In the term that it knows; one of a newer term is waited for, for a second."""


@dataclass(frozen=True)
class CallRight:
    """Of one call."""

    caller: CallerKind
    said: str
    """With what."""


RIGHTS: Final[Mapping[str, CallRight]] = {
    "Peer.Hello": CallRight(
        CallerKind.ANYBODY, "its cluster's id, label and whether it is open; its port"
    ),
    "Peer.Join": CallRight(
        CallerKind.ANYBODY, "its certificate; a proof of a token, or of four words"
    ),
    "Peer.Bring": CallRight(CallerKind.ANYBODY, "a ledger to be united; taken with consent alone"),
    "Peer.AskRoster": CallRight(
        CallerKind.ANYBODY, "a cluster's id; only who was a member is told"
    ),
    "Peer.Beat": CallRight(CallerKind.MEMBER, "whom it follows, the term, its load"),
    "Peer.Leave": CallRight(CallerKind.MEMBER, "whom it would have lead next"),
    "Peer.UsePath": CallRight(CallerKind.MEMBER, "an address of its own"),
    "Peer.TakeBytes": CallRight(CallerKind.MEMBER, "bytes that are counted and dropped"),
    "Peer.GiveBytes": CallRight(CallerKind.MEMBER, "nothing"),
    "Peer.NotePath": CallRight(CallerKind.MEMBER, "an address of its own, and a speed"),
    "Peer.MeasureWays": CallRight(CallerKind.MEMBER, "the id of another member"),
    "Peer.TraceSamples": CallRight(CallerKind.MEMBER, "ids of samples, or a place in shards"),
    "Peer.AskReport": CallRight(CallerKind.MEMBER, "nothing"),
    "Peer.ReadCurves": CallRight(CallerKind.MEMBER, "the id of a run"),
    "Peer.AskPreVote": CallRight(CallerKind.MEMBER, "the term in which it wants to lead"),
    "Peer.Exchange": CallRight(CallerKind.MEMBER, "entries, each signed by its author"),
    "Peer.FetchSnapshot": CallRight(CallerKind.MEMBER, "nothing"),
    "Peer.Command": CallRight(CallerKind.MEMBER, "a verb of the leader's, and its arguments"),
    "Peer.OpenProbe": CallRight(CallerKind.MEMBER, "the address from which it will connect"),
    "Peer.ProbeRoutes": CallRight(CallerKind.MEMBER, "addresses of listeners that members opened"),
    "Peer.TryLinks": CallRight(CallerKind.MEMBER, "ids of members"),
    "Peer.UseStore": CallRight(CallerKind.RANK, "a key of the store where an attempt's ranks meet"),
    "Peer.PrepareRanks": CallRight(
        CallerKind.LEADER, "an engine, a number of ranks, their memory, the size of a checkpoint"
    ),
    "Peer.RunWork": CallRight(CallerKind.LEADER, "its term, a task's name, parameters, artifacts"),
    "Peer.EndEpoch": CallRight(CallerKind.LEADER, "its term, and the attempt that ends"),
    "Artifacts.Have": CallRight(CallerKind.MEMBER, "hashes of artifacts"),
    "Artifacts.GetManifest": CallRight(CallerKind.MEMBER, "the hash of an artifact"),
    "Artifacts.Draw": CallRight(
        CallerKind.MEMBER, "the hash of an artifact, and the chunks it lacks"
    ),
    "Artifacts.Fetch": CallRight(CallerKind.MEMBER, "the hash of an artifact, and ranges of bytes"),
    "Artifacts.Replicate": CallRight(CallerKind.MEMBER, "the hash of an artifact"),
    "Scripts.Prepare": CallRight(
        CallerKind.MEMBER, "a program and a script, where scripts are allowed"
    ),
    "Scripts.Bring": CallRight(CallerKind.MEMBER, "an artifact's id, where scripts are allowed"),
    "Scripts.Run": CallRight(
        CallerKind.MEMBER, "a program and its arguments, where scripts are allowed"
    ),
    "Serving.Answer": CallRight(CallerKind.MEMBER, "a model's artifact, and a request for text"),
    "Serving.AnswerBatches": CallRight(
        CallerKind.MEMBER, "a model's artifact, and what tasks ask it; the tasks stay there"
    ),
}
"""Service and call -> its right."""


OF_TRUSTED_MEMBERS: Final[Mapping[str, str]] = {
    "node.trust": "say yes to others",
    "node.approve": "let others in",
    "node.remove": "remove others",
    "cluster.open": "open the door",
    "cluster.token": "make join tokens",
    "cluster.merge": "merge clusters",
    "cluster.hand_over": "say who leads",
    "data.purge": "purge sources",
    "model.promote": "promote models",
    "cycle.rollback": "roll models back",
    "alarm.dismiss": "dismiss alarms",
}
"""Command -> what it does. Members that walked in through the open door may not, until somebody has
said yes to them; nor may they bring scripts."""


def trust_command(name: str) -> str:
    """Return what says yes to a member."""
    return f"jupiterctl node trust {quote(name)}"


def open_calls() -> frozenset[str]:
    """Return the calls that strangers may make, without the names of their services."""
    return frozenset(
        name.partition(".")[2]
        for name, right in RIGHTS.items()
        if right.caller is CallerKind.ANYBODY
    )
