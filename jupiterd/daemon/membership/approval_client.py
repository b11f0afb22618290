"""The newcomer's side of approval: asks a closed cluster's leader, and shows the words.

Owns the clock, the random bytes and the messages around `approval.Application`. Doesn't know how a
leader is found, or what becomes of the answer.
"""

import secrets

from jupiterd.cluster.membership.admission import Summary
from jupiterd.cluster.membership.approval import (
    NONCE_BYTES,
    STICK_S,
    Application,
    ApprovalAnswer,
    approve_command,
)
from jupiterd.daemon.runtime.approval_words import spelled
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import MAX_REASON_CHARACTERS, sanitized_text
from jupiterd.ids import NodeId
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

ASK_LEADER_S = 1.0
ASK_OTHERS_S = 5.0
"""Seconds until a leader that has answered is asked again, and its other addresses and members."""


class ApprovalClient:
    """This node's wait outside a closed cluster."""

    def __init__(self, own: NodeId, name: str) -> None:
        self._own = own
        self._application = Application(own)
        self._leader_at: tuple[NodeId, Address] | None = None
        self._leader_at_s = 0.0
        self.command = approve_command(name, own)
        """What to run on a member to let this node in."""

    @property
    def words(self) -> str:
        """The words to compare; empty where there are none."""
        return spelled(self._application.numbers)

    def fill(self, request: peer_pb2.JoinRequest, leader: NodeId, theirs: Summary) -> bool:
        """Put the next step of the exchange in a request; False where another leader answers."""
        fresh = secrets.token_bytes(NONCE_BYTES)
        question = self._application.question(now_s(), leader, theirs.cluster, fresh)
        if question is None:
            return False
        request.commitment, request.nonce = question.commitment, question.nonce
        return True

    def take(self, leader: NodeId, reply: peer_pb2.JoinReply) -> bool:
        """Take in a reply; say whether to go on with the exchange at once."""
        if reply.decision != peer_pb2.JoinReply.Decision.PENDING:
            self._application.drop(leader)
            return False
        return self._application.take(now_s(), leader, ApprovalAnswer(reply.nonce, reply.revealed))

    def is_with(self, node: NodeId) -> bool:
        """Say whether `node` has answered as the leader of a closed cluster does."""
        return self._application.is_with(node)

    def end(self) -> None:
        """Wait no more: a cluster has let this node in."""
        self._application = Application(self._own)
        self._leader_at = None

    def asks_elsewhere(self, node: NodeId, address: Address) -> bool:
        """Say whether this leader is being asked at another of its addresses just now."""
        if self._leader_at is None or now_s() - self._leader_at_s >= STICK_S:
            return False
        return self._leader_at[0] == node and self._leader_at[1] != address

    def wait_s(self, node: NodeId, address: Address) -> float:
        """Return when an address of the closed cluster is due again; the leader's one is soon."""
        if not self.is_with(node) or self.asks_elsewhere(node, address):
            return ASK_OTHERS_S
        self._leader_at, self._leader_at_s = (node, address), now_s()
        return ASK_LEADER_S

    def reason(self, theirs: Summary, reply: peer_pb2.JoinReply) -> str:
        """Return why this node waits, for people."""
        if self.words:
            return (
                f"{theirs.title} is closed; if a member shows the words {self.words} for this "
                f"node, run there: {self.command}"
            )
        return sanitized_text(reply.reason, MAX_REASON_CHARACTERS)
