"""The leader's side of approval: answers newcomers while the cluster is closed.

Owns the clock, the random bytes and the messages around `pending_joins.WaitingList`. Doesn't know
who may come in without being asked for (`admission`).
"""

import logging
import secrets

from jupiterd.cluster.membership.approval import COMMITMENT_BYTES, NONCE_BYTES, ApprovalQuestion
from jupiterd.cluster.membership.pending_joins import Applicant, PendingJoins, clean_name
from jupiterd.daemon.runtime.approval_words import spelled
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import RefusedError
from jupiterd.ids import NodeId, short
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)


def receive(
    waiting: PendingJoins, who: NodeId, host: str, request: peer_pb2.JoinRequest, reason: str
) -> peer_pb2.JoinReply:
    """Answer one who must be approved, for the `reason` that it gets where it has no place yet.

    Raises:
        RefusedError: what it sent isn't of the size that it must be.
    """
    name = clean_name(request.name, who)
    applicant = Applicant(who, name, request.certificate_pem, host)
    fresh = secrets.token_bytes(NONCE_BYTES)
    answer = waiting.ask(now_s(), applicant, _question(request), fresh)
    if answer.is_revealed and request.nonce:
        shown = {seen.node: seen for seen in waiting.shown(now_s())}
        words = spelled(shown[who].numbers)
        log.info("waits_for_approval", extra={"node": short(who), "peer": name, "words": words})
    return peer_pb2.JoinReply(
        decision=peer_pb2.JoinReply.Decision.PENDING,
        reason=answer.reason or reason,
        nonce=answer.nonce,
        revealed=answer.is_revealed,
    )


def _question(request: peer_pb2.JoinRequest) -> ApprovalQuestion:
    if len(request.commitment) != COMMITMENT_BYTES or len(request.nonce) not in (0, NONCE_BYTES):
        raise RefusedError("that isn't how approval is asked for")
    return ApprovalQuestion(request.commitment, request.nonce)
