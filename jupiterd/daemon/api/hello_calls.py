"""The Hello call: what this node says of itself to a caller, and what it notes of the caller.

Owns the answer; a stranger gets less than a member. Doesn't know what follows for who calls
(`membership.handshake`).
"""

from collections.abc import Callable
from typing import Protocol

from jupiterd.cluster.membership.admission import Summary
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.seen_clusters import to_message
from jupiterd.daemon.membership.handshake import PROTOCOL, Handshake
from jupiterd.ids import ClusterId, NodeId
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2


class OwnRun(Protocol):
    """What this daemon says of its run."""

    run_nonce: str
    """Drawn at each start."""
    members_port: int
    """Where members alone are let in."""


class HelloCalls:
    """This node's answers."""

    def __init__(
        self,
        name: str,
        replica: Replica,
        peers: Peers,
        handshake: Handshake,
        summary: Callable[[], Summary],
        shown: OwnRun,
    ) -> None:
        """`name`: of this node, for members; `summary`: of the cluster, for strangers too."""
        self._name, self._replica, self._peers = name, replica, peers
        self._handshake, self._summary, self._shown = handshake, summary, shown

    def answer(
        self, who: NodeId, host: str, address: Address | None, request: peer_pb2.HelloRequest
    ) -> peer_pb2.HelloReply:
        """Say which cluster we're in, and look at the caller in turn.

        Args:
            who: it calls.
            host: where from.
            address: where it may answer, by its word; None where that can't be.
            request: what it says.
        """
        is_caller = self._handshake.is_caller(who, request.greeting, str(address or host))
        if address is not None:
            self._handshake.note_caller(who, address, request.summary.cluster)
            if self._replica.cluster in request.summary.absorbed:
                self._handshake.addresses.hasten(address)
        is_member = who in self._replica.state.members
        summary = self._summary()
        said = summary if is_member else summary.for_stranger(ClusterId(request.summary.cluster))
        return peer_pb2.HelloReply(
            protocol=PROTOCOL,
            summary=to_message(said),
            name=self._name if is_member else "",
            run_nonce=self._shown.run_nonce,
            member=is_member,
            is_caller=is_caller,
            clone_at=self._replica.clones.seen_at if is_member else "",
            member_addresses=self._peers.addresses_for(who) if is_member else (),
            members_port=self._shown.members_port if is_member else 0,
        )
