"""Who may call what on another node: a row for each call of the services that nodes offer.

Owns the table. The border lets strangers reach what the table opens to them; a node's services ask
for the rest. Doesn't know how a caller is told from another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Final


class Caller(StrEnum):
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

    caller: Caller
    said: str
    """With what."""


RIGHTS: Final[Mapping[str, CallRight]] = {
    "Peer.Hello": CallRight(
        Caller.ANYBODY, "its cluster's id, label and whether it is open; its port"
    ),
    "Peer.Join": CallRight(Caller.ANYBODY, "its certificate; a proof of a token, or of four words"),
    "Peer.Bring": CallRight(Caller.ANYBODY, "a ledger to be united; taken with consent alone"),
    "Peer.AskRoster": CallRight(Caller.ANYBODY, "a cluster's id; only who was a member is told"),
    "Peer.Beat": CallRight(Caller.MEMBER, "whom it follows, the term, its load"),
    "Peer.Leave": CallRight(Caller.MEMBER, "whom it would have lead next"),
    "Peer.UsePath": CallRight(Caller.MEMBER, "an address of its own"),
    "Peer.TakeBytes": CallRight(Caller.MEMBER, "bytes that are counted and dropped"),
    "Peer.GiveBytes": CallRight(Caller.MEMBER, "nothing"),
    "Peer.NotePath": CallRight(Caller.MEMBER, "an address of its own, and a speed"),
    "Peer.MeasureWays": CallRight(Caller.MEMBER, "the id of another member"),
    "Peer.TraceSamples": CallRight(Caller.MEMBER, "ids of samples, or a place in shards"),
    "Peer.AskReport": CallRight(Caller.MEMBER, "nothing"),
    "Peer.ReadCurves": CallRight(Caller.MEMBER, "the id of a run"),
    "Peer.AskPreVote": CallRight(Caller.MEMBER, "the term in which it wants to lead"),
    "Peer.Exchange": CallRight(Caller.MEMBER, "entries, each signed by its author"),
    "Peer.FetchSnapshot": CallRight(Caller.MEMBER, "nothing"),
    "Peer.Command": CallRight(Caller.MEMBER, "a verb of the leader's, and its arguments"),
    "Peer.OpenProbe": CallRight(Caller.MEMBER, "the address from which it will connect"),
    "Peer.ProbeRoutes": CallRight(Caller.MEMBER, "addresses of listeners that members opened"),
    "Peer.TryLinks": CallRight(Caller.MEMBER, "ids of members"),
    "Peer.UseStore": CallRight(Caller.RANK, "a key of the store where an attempt's ranks meet"),
    "Peer.PrepareRanks": CallRight(
        Caller.LEADER, "an engine, a number of ranks, their memory, the size of a checkpoint"
    ),
    "Peer.RunWork": CallRight(Caller.LEADER, "its term, a task's name, parameters, artifacts"),
    "Peer.EndEpoch": CallRight(Caller.LEADER, "its term, and the attempt that ends"),
    "Artifacts.Have": CallRight(Caller.MEMBER, "hashes of artifacts"),
    "Artifacts.GetManifest": CallRight(Caller.MEMBER, "the hash of an artifact"),
    "Artifacts.Draw": CallRight(Caller.MEMBER, "the hash of an artifact, and the chunks it lacks"),
    "Artifacts.Fetch": CallRight(Caller.MEMBER, "the hash of an artifact, and ranges of bytes"),
    "Artifacts.Replicate": CallRight(Caller.MEMBER, "the hash of an artifact"),
    "Scripts.Prepare": CallRight(
        Caller.MEMBER, "a program and a script, where scripts are allowed"
    ),
    "Scripts.Bring": CallRight(Caller.MEMBER, "an artifact's id, where scripts are allowed"),
    "Scripts.Run": CallRight(
        Caller.MEMBER, "a program and its arguments, where scripts are allowed"
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
        name.partition(".")[2] for name, right in RIGHTS.items() if right.caller is Caller.ANYBODY
    )
