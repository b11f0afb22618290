"""Becoming a member of a cluster that was met: whether to ask, what to ask, and moving there.

Owns why this node waits outside, and what it has to show: a token, or its wait for approval.
Doesn't know who is met when (`handshake`), or who may come in (`admission`).
"""

import asyncio
import logging
from collections.abc import Callable

from jupiterd import __version__
from jupiterd.cluster.ledger.tokens import Side, Token, is_proved, parse_token, prove
from jupiterd.cluster.membership.admission import Summary, choose
from jupiterd.cluster.membership.token_wait import token_wait_words
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.snapshot_transfer import fetch_ledger
from jupiterd.daemon.links.dial_schedule import SOON_S, DialSchedule
from jupiterd.daemon.links.seen_clusters import REMEMBERED_S, SeenClusters
from jupiterd.daemon.membership.approval_client import ApprovalClient
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import dialable_addresses, is_id
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

JOIN_TIMEOUT_S = 10.0
SEEN_S = 10.0
MAX_QUESTIONS = 2
"""Of one exchange for approval: the commitment, then the nonce."""


class JoinClient:
    """Asks for admission to another cluster, and moves there once admitted."""

    def __init__(
        self,
        identity: Identity,
        replica: Replica,
        addresses: DialSchedule,
        seen: SeenClusters,
        name: str,
        summary: Callable[[], Summary],
    ) -> None:
        self._identity = identity
        self._replica = replica
        self._addresses = addresses
        self._seen = seen
        self._name = name
        self._summary = summary
        self.moved: Callable[[NodeId, ClusterId], None] = lambda _leader, _cluster: None
        """Called once this node has moved to another cluster."""
        self._requesting = asyncio.Lock()
        self._logged: dict[str, float] = {}
        self._began_s = now_s()
        self.port = 0
        """The port of our Peer service, as hello and join requests name it."""
        self.token: Token | None = None
        """Of the only cluster that this node may join, where it has one."""
        self.approval = ApprovalClient(identity.node_id, name)
        """Our exchange for approval by a closed cluster."""
        self.pending_reason = ""
        """Why this node waits outside a cluster that it sees; empty when it doesn't."""
        self.is_local = False
        """This node keeps to its machine, where others may have a cluster of their own."""
        self.token_wait = ""
        """Which cluster the token is for and what is in sight instead; empty where it is."""

    def use_settings(self, token: str, *, is_local: bool) -> None:
        """Set the join token and locality from the settings; raises what `parse_token` does.

        token: of the cluster to join; empty: none. A token of a cluster that this
        machine has left may still stand in a file, and is passed over.
        """
        self.token, self.is_local = parse_token(token) if token else None, is_local
        if self.token is not None and self.token.cluster in self._replica.left:
            log.info("token_passed_over", extra={"left": short(self.token.cluster)})
            self.token = None

    @property
    def shown_reason(self) -> str:
        """Return why this node waits; nothing once its own cluster has work, which it stays for."""
        is_waiting = self.token is not None or self._summary().blank
        return self.pending_reason if is_waiting else ""

    @property
    def is_under_way(self) -> bool:
        """Say whether a join request of ours is under way."""
        return self._requesting.locked()

    def look_for_wanted(self) -> None:
        """Log and show that the cluster of our token isn't in sight, and which ones are.

        A wait outside a cluster that has gone ends.
        """
        seen = self._seen.within()
        if self.pending_reason and all(each.cluster == self._replica.cluster for each in seen):
            log.info("waits_no_more", extra={"reason": self.pending_reason})
            self.pending_reason = ""
            self.approval.end()
        if self.token is None:
            return
        waited_s = now_s() - self._began_s
        waiting = token_wait_words(self.token.cluster, self._replica.cluster, seen, waited_s)
        if waiting and waiting != self.token_wait:
            log.warning("looks_for_cluster", extra={"reason": waiting})
        self.token_wait = waiting

    async def ask_at(
        self, node: NodeId, address: Address, theirs: Summary, channels: PeerChannels
    ) -> float:
        """Ask to be let in; return in how many seconds this address is due again."""
        if not self.approval.asks_elsewhere(node, address):
            await self._join(node, theirs, channels)
        is_closed = self.approval.is_with(node) or not theirs.open
        is_outside = is_closed and self._replica.cluster != theirs.cluster
        return self.approval.wait_s(node, address) if is_outside else SOON_S

    async def _join(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        chosen, reason = choose(self._summary(), self._seen.within(SEEN_S))
        if chosen is None:
            self.set_pending(reason)
            return
        if chosen == theirs.cluster:
            await self._ask_to_join(node, theirs, channels)

    async def use_token(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        """Ask to be let in by the cluster of our token."""
        if self._summary().blank:
            await self._ask_to_join(node, theirs, channels)
        else:
            self.set_pending(
                "this node's own cluster has work, which joining would drop; "
                "to join all the same, start it with a new state folder: jupiterd --state-dir DIR"
            )

    async def _ask_to_join(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        if self._requesting.locked():
            return
        async with self._requesting:
            for _ in range(MAX_QUESTIONS):
                request = self._join_request(node, theirs)
                if request is None:
                    return
                reply = await channels.control.Join(request, timeout=JOIN_TIMEOUT_S)
                if not self.approval.take(node, reply):
                    await self._take_answer(node, theirs, reply, channels)
                    return

    def _join_request(self, node: NodeId, theirs: Summary) -> peer_pb2.JoinRequest | None:
        """Return what to ask a member; None where its leader has answered just now."""
        request = peer_pb2.JoinRequest(
            name=self._name,
            port=self.port,
            certificate_pem=self._identity.certificate_pem,
            version=__version__,
        )
        if self.token is not None:
            request.token_id = self.token.id
            request.proof = self._proof(self.token, Side.NEWCOMER, node)
        elif not self.approval.fill(request, node, theirs):
            return None
        return request

    def _proof(self, token: Token, side: Side, member: NodeId) -> bytes:
        return prove(token.secret, side, token.cluster, self._identity.node_id, member)

    async def _take_answer(
        self, node: NodeId, theirs: Summary, reply: peer_pb2.JoinReply, channels: PeerChannels
    ) -> None:
        decisions = peer_pb2.JoinReply.Decision
        if reply.decision == decisions.ADMITTED and is_id(reply.cluster) and is_id(reply.leader):
            if self._summary().blank and reply.cluster == theirs.cluster:
                await self._move(node, reply, channels)
        elif reply.decision == decisions.ASK_LEADER:
            for address in dialable_addresses(reply.leader_addresses):
                self._addresses.note(address)
        else:
            self.set_pending(self.approval.reason(theirs, reply))

    async def _move(self, node: NodeId, reply: peer_pb2.JoinReply, channels: PeerChannels) -> None:
        if self.token is not None and not (
            reply.cluster == self.token.cluster
            and is_proved(self._proof(self.token, Side.MEMBER, node), reply.proof)
        ):
            self.set_pending("the cluster in sight doesn't know the join token, or it is used up")
            return
        cluster, began_s = ClusterId(reply.cluster), now_s()
        await self._replica.move_to(await fetch_ledger(channels.control, node, cluster))
        self.pending_reason = ""
        self.approval.end()
        log.info(
            "joined",
            extra={
                "cluster": short(cluster),
                "through": short(node),
                "elapsed_s": round(now_s() - began_s, 3),
            },
        )
        self.moved(NodeId(reply.leader), cluster)

    def set_pending(self, reason: str) -> None:
        """Keep the latest reason; a reason that comes and goes among others is logged once."""
        logged = {r: at_s for r, at_s in self._logged.items() if now_s() - at_s < REMEMBERED_S}
        if reason not in logged:
            level = logging.INFO if self.is_local and self.token is None else logging.WARNING
            log.log(level, "waits_outside", extra={"reason": reason})
        self._logged = logged | {reason: now_s()}
        self.pending_reason = reason
