"""Join: a node wants to be let in.

Owns the order of the looks at it: who decides, whether it proves to know a token, and whether a
trusted member is to lead first. Doesn't know the rule (`cluster.membership.admission`).
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from jupiterd.cluster.facts.facts import NodeAdmitted, TokenIssued
from jupiterd.cluster.ledger.tokens import Side, is_proved, prove
from jupiterd.cluster.membership.admission import Admission, admit
from jupiterd.cluster.membership.pending_joins import PendingJoins
from jupiterd.cluster.values.version_groups import why_refused
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.membership.approval_server import receive
from jupiterd.daemon.membership.handshake import Handshake
from jupiterd.daemon.membership.trust import HandOver
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.errors import BadCertificateError
from jupiterd.ids import NodeId, short
from jupiterd.net.identity import node_id_of
from jupiterd.net.refusals import Refusals
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

MAX_CERTIFICATE_BYTES = 4096

DECISIONS = peer_pb2.JoinReply.Decision


@dataclass(frozen=True)
class Deciding:
    """What the leader lets a node in with."""

    term: Term
    waiting: PendingJoins
    """Who waits for a person to say yes."""


@dataclass(frozen=True)
class JoinPolicy:
    """Who decides, and by what of this machine."""

    deciding: Callable[[], Deciding | None]
    """What this node decides with; None where another node leads."""
    leader: Callable[[], tuple[NodeId | None, list[str]]]
    """Who leads, and where it answers."""
    program: Callable[[], str]
    """Says the version of Jupiter that runs here."""
    trusts_lan: bool
    is_open: Callable[[], bool]
    """Says whether newcomers are let in, as far as this node has a say."""


class JoinCalls:
    """This node's part in letting others in."""

    def __init__(
        self,
        replica: Replica,
        handshake: Handshake,
        hand_over: HandOver,
        refusals: Refusals,
        policy: JoinPolicy,
    ) -> None:
        """Take what is agreed on, how others are met, who may decide, and by what it is decided."""
        self._replica, self._handshake = replica, handshake
        self._hand_over, self._refusals, self._policy = hand_over, refusals, policy
        self._admitting = asyncio.Lock()

    async def answer(
        self, who: NodeId, address: Address | None, request: peer_pb2.JoinRequest
    ) -> peer_pb2.JoinReply:
        """Let the caller in, or say who decides, or why not.

        Raises:
            BadCertificateError: its certificate isn't that of the connection.
            RefusedError: what it sent to be approved isn't of the size that it must be.
        """
        if self._handshake.joining.is_under_way:
            return _pending("it is joining another cluster")
        deciding = self._policy.deciding()
        if deciding is None:
            return self._ask_leader()
        _check_certificate(who, request.certificate_pem)
        token = self._proved_token(who, request)
        if self._is_for_others(who, token):
            return _pending("a trusted member is to lead first; it is tried again by itself")
        async with self._admitting:  # one after the other, or a token would let in two
            decision, reason = await self._admit(deciding, who, request, token)
        if decision is Admission.PENDING and request.commitment:
            return receive(deciding.waiting, who, address.host if address else "", request, reason)
        if decision is not Admission.ADMITTED:
            self._refusals.count("not-let-in", short(who), reason)
            return peer_pb2.JoinReply(decision=DECISIONS.REFUSED, reason=reason)
        if address is not None:
            self._handshake.addresses.note(address)
        return peer_pb2.JoinReply(
            decision=DECISIONS.ADMITTED,
            reason=reason,
            cluster=self._replica.cluster,
            leader=self._replica.node,
            proof=self._proof(Side.MEMBER, who, token) if token is not None else b"",
        )

    def _ask_leader(self) -> peer_pb2.JoinReply:
        leader, addresses = self._policy.leader()
        return peer_pb2.JoinReply(
            decision=DECISIONS.ASK_LEADER, leader=leader or "", leader_addresses=addresses
        )

    def _is_for_others(self, who: NodeId, token: TokenIssued | None) -> bool:
        """Say whether a trusted member is to let this one in, and have one lead where one is here.

        This leader admits others without approval, as it was itself, until the window closed once.
        """
        is_known = who in self._replica.state.members
        walks_in = (
            token is None and self._policy.is_open() and not self._replica.state.roster.is_shut
        )
        if is_known or walks_in or self._hand_over.is_trusted:
            return False
        self._hand_over.begin_for(who)
        return True

    async def _admit(
        self,
        deciding: Deciding,
        who: NodeId,
        request: peer_pb2.JoinRequest,
        token: TokenIssued | None,
    ) -> tuple[Admission, str]:
        state, policy = self._replica.state, self._policy
        letting_in = token.token if token is not None and token.token in state.tokens else ""
        apart = why_refused(sanitized_text(request.version), policy.program())
        decision, reason = admit(state, policy.is_open(), who, letting_in, apart, policy.trusts_lan)
        if decision is Admission.ADMITTED and who not in state.members:
            name = sanitized_text(request.name)
            admission = NodeAdmitted(who, name, request.certificate_pem, reason, letting_in)
            await deciding.term.record(admission)
            log.info("admitted", extra={"node": short(who), "reason": reason})
        if decision is Admission.ADMITTED:
            deciding.waiting.drop(who)
        return decision, reason

    def _proved_token(self, who: NodeId, request: peer_pb2.JoinRequest) -> TokenIssued | None:
        """Return the join token whose secret the caller has proved to know, if there is one."""
        token = self._replica.state.issued_tokens.get(request.token_id)
        if token is not None and is_proved(self._proof(Side.NEWCOMER, who, token), request.proof):
            return token
        if request.token_id:
            self._refusals.count("bad-token", short(who), "it doesn't know that join token")
        return None

    def _proof(self, side: Side, newcomer: NodeId, token: TokenIssued) -> bytes:
        return prove(token.secret, side, self._replica.cluster, newcomer, self._replica.node)


def _check_certificate(who: NodeId, certificate: bytes) -> None:
    if len(certificate) > MAX_CERTIFICATE_BYTES or node_id_of(certificate) != who:
        raise BadCertificateError("the certificate isn't that of the connection")


def _pending(reason: str) -> peer_pb2.JoinReply:
    return peer_pb2.JoinReply(decision=DECISIONS.PENDING, reason=reason)
