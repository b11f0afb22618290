"""From an address to a linked peer: look at its key, say hello, and join or be joined.

Owns what follows from whoever answers. Doesn't know when an address is tried (`known_addresses`),
how addresses are found (`net`) or who may come in (`admission`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

import grpc

from jupiterd.cluster.admission import Meeting, Summary, choose, meet
from jupiterd.cluster.sought import still_sought
from jupiterd.cluster.tokens import Side, Token, is_proved, prove
from jupiterd.daemon.applying import Applying
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.clusters_seen import (
    REMEMBERED_S,
    ClustersSeen,
    Outsider,
    from_message,
    to_message,
)
from jupiterd.daemon.journal import Journal
from jupiterd.daemon.known_addresses import FIRST_RETRY_S, SOON_S, Attempt, KnownAddresses
from jupiterd.daemon.ledger_transfer import fetch_ledger
from jupiterd.daemon.peers import Peer, Peers
from jupiterd.daemon.told import is_id, told_text, ways_to
from jupiterd.errors import JupiterError
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.credentials import peek_certificate
from jupiterd.net.identity import Identity, node_id_of
from jupiterd.net.interface_watch import LostAddresses
from jupiterd.net.interfaces import addresses_by_interface
from jupiterd.ports import Address, Discovery
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

log = logging.getLogger(__name__)

PROTOCOL = 1
TICK_S = 0.1
LOOK_AT_LINKS_S = 0.5
HELLO_TIMEOUT_S = 3.0
JOIN_TIMEOUT_S = 10.0
SEEN_S = 10.0
WORKING_S = 5.0
MAX_TOLD_ADDRESSES = 4 * 64
MAX_GREETINGS = 16
"""At once: whoever announces a thousand addresses doesn't get a thousand connections."""
MAX_QUESTIONS = 2
"""Of one exchange for approval: the commitment, then the nonce."""


class Greeter:
    """Meets whoever is out there."""

    def __init__(
        self,
        identity: Identity,
        journal: Journal,
        peers: Peers,
        name: str,
        summary: Callable[[], Summary],
        moved: Callable[[NodeId, ClusterId], None],
    ) -> None:
        self._identity = identity
        self._journal = journal
        self._peers = peers
        self._name = name
        self._summary = summary
        self.moved = moved
        """Called once this node has moved to another cluster."""
        self.addresses = KnownAddresses(lambda address: peers.linked_at(address) is not None)
        self.seen = ClustersSeen()
        self._joining = asyncio.Lock()
        self._lost = LostAddresses(lambda: frozenset(addresses_by_interface()))
        self._told: dict[str, float] = {}
        self._began_s = now_s()
        self.port = 0
        self.run_nonce = ""
        """Drawn at each start of the daemon, so that it knows itself."""
        self.clone_at = ""
        """Where another machine uses this node's key, once that was seen; for good."""
        self.on_removed: Callable[[PeerStub], Awaitable[None]] = _say_nothing
        """Called with a node of this cluster that was removed and may not know it."""
        self.on_unknown: Callable[[PeerStub], Awaitable[None]] = _say_nothing
        """Called with a node of this cluster that knows us, and we don't know it."""
        self.on_clone: Callable[[], None] = lambda: None
        self.on_met: Callable[[NodeId, Summary, PeerChannels], Awaitable[bool]] = _go_on
        """Called first with whoever was met; says whether there is nothing more to be done now."""
        self.token: Token | None = None
        """Of the only cluster that this node may join, where it has one."""
        self.applying = Applying(identity.node_id, name)
        """Our wait for approval by a closed cluster."""
        self.pending_reason = ""
        """Why this node waits outside a cluster that it sees; empty when it doesn't."""
        self.sought = ""
        """Which cluster is looked for in vain, and what is seen instead; empty where none is."""

    @property
    def is_joining(self) -> bool:
        """Say whether a request of ours to be let in is under way."""
        return self._joining.locked()

    def note_caller(self, node: NodeId, address: Address, cluster: str) -> None:
        """Take up where somebody who said hello may answer; hasten only where a link is missing.

        Two daemons that greet each other must not keep each other busy for ever.
        """
        peer = self._peers.get(node)
        is_missing = peer is None or peer.address != address
        is_new = self.addresses.note_new(address)
        if not is_new and is_missing and cluster == self._journal.cluster:
            self.addresses.hasten(address, unless_tried_within_s=FIRST_RETRY_S / 2)

    async def follow(self, discovery: Discovery) -> None:
        """Take up every address that discovery sees."""
        async for address in discovery.sightings():
            self.addresses.note(address)

    async def run(self) -> None:
        """Greet each known address when it is due."""
        look_at_s = now_s()
        running: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(TICK_S)
                if now_s() >= look_at_s:
                    look_at_s = now_s() + LOOK_AT_LINKS_S
                    self._look_at_links()
                    self.look_for_wanted()
                for address, attempt in self.addresses.due()[: MAX_GREETINGS - len(running)]:
                    attempt.begin()
                    task = group.create_task(self._greet(address, attempt), name=f"greet {address}")
                    running.add(task)
                    task.add_done_callback(running.discard)

    def _look_at_links(self) -> None:
        """Where an address of ours is gone, look for other ways to those we reached from it."""
        self.addresses.recall(lambda node: self._peers.get(node) is not None)
        lost = self._lost.among(self._peers.sources())
        for peer in self._peers.strand(lost):
            log.info("link_stranded", extra={"node": short(peer.node), "source": peer.source})
            self.addresses.note(peer.address)
            for address in ways_to(peer.addresses):
                self.addresses.note(address)

    def look_for_wanted(self) -> None:
        """Where the cluster of our token isn't in sight, say so, and which is."""
        if self.token is None:
            return
        waited_s = now_s() - self._began_s
        seen = self.seen.within()
        sought = still_sought(self.token.cluster, self._journal.cluster, seen, waited_s)
        if sought and sought != self.sought:
            log.warning("looks_for_cluster", extra={"reason": sought})
        self.sought = sought

    async def _greet(self, address: Address, attempt: Attempt) -> None:
        try:
            certificate = await peek_certificate(address, self._identity, HELLO_TIMEOUT_S)
            node = node_id_of(certificate)
            channels = PeerChannels(self._identity, address, certificate)
            try:
                if node == self._identity.node_id:
                    attempt.is_ours = await self._is_this_daemon(address, channels)
                else:
                    await self._meet(node, address, certificate, channels, attempt)
            finally:
                await channels.close()
        except JupiterError as error:
            log.debug("greeting_failed", extra={"address": str(address), "reason": error.message})
        except grpc.aio.AioRpcError as error:
            log.debug("greeting_failed", extra={"address": str(address), "reason": error.details()})
        except Exception:  # whatever a stranger says, it must not end this daemon
            log.exception("greeting_failed", extra={"address": str(address)})
        finally:
            attempt.end()

    async def _is_this_daemon(self, address: Address, channels: PeerChannels) -> bool:
        """Say whether the daemon with our key at that address is this one, and not a clone."""
        reply = await channels.heartbeat.Hello(self.hello(), timeout=HELLO_TIMEOUT_S)
        if reply.run_nonce == self.run_nonce:
            return True
        if not self.clone_at:
            log.error("clone_met", extra={"address": str(address)})
            self.clone_at = str(address)
            self.on_clone()
        return False

    async def _meet(
        self,
        node: NodeId,
        address: Address,
        certificate: bytes,
        channels: PeerChannels,
        attempt: Attempt,
    ) -> None:
        # A stranger's answer isn't believed, nor may it be large: so on the channel for small ones.
        reply = await channels.heartbeat.Hello(self.hello(), timeout=HELLO_TIMEOUT_S)
        theirs = from_message(reply.summary)
        self.seen.note(theirs)
        known_member = node in self._journal.state.members
        if theirs.cluster != self._journal.cluster:
            self.seen.note_outsider(Outsider(theirs, address))
        if await self.on_met(node, theirs, channels):
            attempt.again_in(SOON_S)
            return
        meeting, reason = meet(self._summary(), theirs, known_member)
        if meeting is Meeting.SAME and known_member:
            working = self._working_link(node, address, reply.run_nonce)
            if working is None:
                peer = await self._peers.link(node, told_text(reply.name), address, certificate)
                peer.run_nonce = reply.run_nonce
            else:
                self._peers.learn(working, address)
                attempt.put_off(node)
            self.pending_reason = ""
            self._note_told(reply.member_addresses)
        elif meeting is Meeting.SAME:
            await self._meet_stranger(node, channels, knows_us=reply.member)
        elif self.token is not None and theirs.cluster != self._journal.cluster:
            if theirs.cluster == self.token.cluster:
                await self._use_token(node, theirs, channels)
                attempt.again_in(SOON_S)
        elif meeting in (Meeting.JOIN_THEIRS, Meeting.PENDING):
            if meeting is Meeting.PENDING and not self.applying.words:
                self._set_pending(reason)
            wait_s = await self._ask_at(node, address, theirs, channels)
            attempt.again_in(wait_s)
        log.debug("met", extra={"node": short(node), "meeting": meeting.name, "reason": reason})

    async def _meet_stranger(self, node: NodeId, channels: PeerChannels, *, knows_us: bool) -> None:
        """Deal with a node of our own cluster that is no member, as far as we know."""
        if self._journal.state.roster.known(node) is not None:
            await self.on_removed(channels.control)  # it was away when it was removed
        elif knows_us:
            await self.on_unknown(channels.control)

    def _note_told(self, addresses: Iterable[str]) -> None:
        """Take up where a member says that others answer; ones that are known aren't hastened."""
        if all(self._peers.get(node) for node in self._others()):
            return
        for address in ways_to(addresses, MAX_TOLD_ADDRESSES):
            self.addresses.note_new(address)

    def _others(self) -> frozenset[NodeId]:
        return frozenset(self._journal.state.members) - {self._identity.node_id}

    def _working_link(self, node: NodeId, address: Address, run_nonce: str) -> Peer | None:
        """Return the link that carries heartbeats to the same run of that daemon elsewhere, if any.

        A link is left alone while it works: closing it would end the work that runs over it.
        """
        peer = self._peers.get(node)
        works = (
            peer is not None
            and not peer.is_stranded
            and peer.address != address
            and peer.run_nonce == run_nonce
            and now_s() - peer.answered_s < WORKING_S
        )
        return peer if works else None

    async def _ask_at(
        self, node: NodeId, address: Address, theirs: Summary, channels: PeerChannels
    ) -> float:
        """Ask to be let in; return in how many seconds this address is due again."""
        if not self.applying.asks_elsewhere(node, address):
            await self._join(node, theirs, channels)
        is_closed = self.applying.is_with(node) or not theirs.open
        is_outside = is_closed and self._journal.cluster != theirs.cluster
        return self.applying.wait_s(node, address) if is_outside else SOON_S

    async def _join(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        chosen, reason = choose(self._summary(), self.seen.within(SEEN_S))
        if chosen is None:
            self._set_pending(reason)
            return
        if chosen == theirs.cluster:
            await self._ask_to_join(node, theirs, channels)

    async def _use_token(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        if self._summary().blank:
            await self._ask_to_join(node, theirs, channels)
        else:
            self._set_pending(
                "this node's own cluster has work, which joining would drop; "
                "to join all the same, start it with a new state folder: jupiterd --state-dir DIR"
            )

    async def _ask_to_join(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        if self._joining.locked():
            return
        async with self._joining:
            for _ in range(MAX_QUESTIONS):
                request = self._join_request(node, theirs)
                if request is None:
                    return
                reply = await channels.control.Join(request, timeout=JOIN_TIMEOUT_S)
                if not self.applying.take(node, reply):
                    await self._take_answer(node, theirs, reply, channels)
                    return

    def _join_request(self, node: NodeId, theirs: Summary) -> peer_pb2.JoinRequest | None:
        """Return what to ask a member; None where its leader has answered just now."""
        request = peer_pb2.JoinRequest(
            name=self._name, port=self.port, certificate_pem=self._identity.certificate_pem
        )
        if self.token is not None:
            request.token_id = self.token.id
            request.proof = self._proof(self.token, Side.NEWCOMER, node)
        elif not self.applying.fill(request, node, theirs):
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
            for address in ways_to(reply.leader_addresses):
                self.addresses.note(address)
        else:
            self._set_pending(self.applying.reason(theirs, reply))

    async def _move(self, node: NodeId, reply: peer_pb2.JoinReply, channels: PeerChannels) -> None:
        if self.token is not None and not (
            reply.cluster == self.token.cluster
            and is_proved(self._proof(self.token, Side.MEMBER, node), reply.proof)
        ):
            self._set_pending("the cluster in sight doesn't know the join token, or it is used up")
            return
        cluster, began_s = ClusterId(reply.cluster), now_s()
        await self._journal.move_to(await fetch_ledger(channels.control, node, cluster))
        self.pending_reason = ""
        self.applying.end()
        log.info(
            "joined",
            extra={
                "cluster": short(cluster),
                "through": short(node),
                "elapsed_s": round(now_s() - began_s, 3),
            },
        )
        self.moved(NodeId(reply.leader), cluster)

    def hello(self) -> peer_pb2.HelloRequest:
        """Return what we say to a stranger."""
        return peer_pb2.HelloRequest(
            protocol=PROTOCOL, summary=to_message(self._summary()), name=self._name, port=self.port
        )

    def _set_pending(self, reason: str) -> None:
        """Keep the latest reason; a reason that comes and goes among others is logged once."""
        told = {r: at_s for r, at_s in self._told.items() if now_s() - at_s < REMEMBERED_S}
        if reason not in told:
            log.warning("waits_outside", extra={"reason": reason})
        self._told = told | {reason: now_s()}
        self.pending_reason = reason


async def _say_nothing(_peer: PeerStub) -> None:
    """Do nothing; until the daemon is put together."""


async def _go_on(_node: NodeId, _theirs: Summary, _channels: PeerChannels) -> bool:
    """Leave it to the greeter; until the daemon is put together."""
    return False
