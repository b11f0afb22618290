"""From an address to a linked peer: look at its key, say hello, and join or be joined.

Owns what follows from whoever answers. Doesn't know when an address is tried (`dial_schedule`),
how addresses are found (`net`) or who may come in (`admission`).
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial

import grpc

from jupiterd.cluster.links.unreached import Reached
from jupiterd.cluster.membership import clones
from jupiterd.cluster.membership.admission import Meeting, Summary, meet
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.cloned_members import ClonedMembers
from jupiterd.daemon.links.dial_schedule import (
    FIRST_RETRY_S,
    LAST_RETRY_S,
    SOON_S,
    Attempt,
    DialSchedule,
)
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.links.seen_clusters import Outsider, SeenClusters, from_message, to_message
from jupiterd.daemon.links.unreachable_peers import UnreachablePeers
from jupiterd.daemon.membership.join_client import JoinClient
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import (
    dialable_addresses,
    sanitized_port,
    sanitized_text,
)
from jupiterd.errors import ConnectionRefusedByPeerError, JupiterError
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.connect_time import connect_time_s
from jupiterd.net.credentials import peek_certificate
from jupiterd.net.identity import node_id_of
from jupiterd.net.interface_watch import LostAddresses
from jupiterd.net.interfaces import recent_addresses
from jupiterd.ports import Address, Discovery
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

log = logging.getLogger(__name__)

PROTOCOL = 1
LOOK_AT_LINKS_S = 0.5
HELLO_TIMEOUT_S = 3.0
MEMBERS_PORT_S = 1.0
WORKING_S = 5.0
MAX_MEMBER_ADDRESSES = 4 * 64
MAX_GREETINGS = 32
"""At once: whoever announces a thousand addresses doesn't get a thousand connections."""
MAX_OLD_GREETINGS = 24
"""Of them at addresses that nobody has announced lately: a dead one takes its place for 3 s."""

_UNANSWERED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


@dataclass(frozen=True)
class MeetingEffects:
    """What follows from whom a node meets."""

    moved: Callable[[NodeId, ClusterId], None]
    """Called once this node is in another cluster, with who leads that."""
    on_unlike: Callable[[NodeId, PeerStub, peer_pb2.HelloReply], Awaitable[None]]
    """Called with a node of this cluster where one of us is no member for the other."""
    on_met: Callable[[NodeId, Summary, PeerChannels], Awaitable[bool]]
    """Called first with whoever was met; says whether there is nothing more to be done now."""
    on_clone: Callable[[], None]
    """Called once another daemon with this node's key was met."""


class Handshake:
    """Says hello at every known address, and links, joins or admits whoever answers."""

    def __init__(
        self,
        replica: Replica,
        peers: Peers,
        name: str,
        summary: Callable[[], Summary],
        present: Callable[[], frozenset[NodeId]],
        effects: MeetingEffects,
    ) -> None:
        """`present` says which members are here, as far as anybody hears them."""
        self._present, self._effects = present, effects
        identity = self._identity = replica.identity
        self._replica = replica
        self._peers = peers
        self._summary = summary
        self.addresses = DialSchedule(lambda address: peers.linked_at(address) is not None)
        self.seen = SeenClusters()
        self.joining = JoinClient(identity, replica, self.addresses, self.seen, name, summary)
        self.joining.moved = effects.moved
        self._addresses_seen: dict[NodeId, tuple[str, ...]] = {}
        self.unreached = UnreachablePeers(self.addresses, peers, self._works)
        self._lost = LostAddresses(lambda: frozenset(recent_addresses()))
        self.cloned = ClonedMembers()

    def note_caller(self, node: NodeId, address: Address, cluster: str) -> None:
        """Take up where somebody who said hello may answer; hasten only where a link is missing.

        Two daemons that greet each other must not keep each other busy for ever.
        """
        peer = self._peers.get(node)
        is_missing = peer is None or peer.address != address
        is_new = self.addresses.note_new(address)
        if not is_new and is_missing and cluster == self._replica.cluster:
            # Each greeting makes the other end greet back: a link that works elsewhere will do.
            pause_s = LAST_RETRY_S if self._works(node) else FIRST_RETRY_S / 2
            self.addresses.hasten(address, unless_tried_within_s=pause_s)

    async def follow(self, discovery: Discovery) -> None:
        """Take up every address that discovery sees."""
        async for address in discovery.sightings():
            self.addresses.note(address)

    async def run(self) -> None:
        """Say hello at each known address when it is due; for ever."""
        look_at_s = now_s()
        running: set[asyncio.Task[None]] = set()

        def end(task: asyncio.Task[None]) -> None:
            running.discard(task)
            self.addresses.reconsider()

        async with asyncio.TaskGroup() as group:
            while True:
                await self.addresses.pause(look_at_s)
                if now_s() >= look_at_s:
                    look_at_s = now_s() + LOOK_AT_LINKS_S
                    self._look_at_links()
                    self._look_for_other_paths()
                    self.joining.look_for_wanted()
                    self.unreached.look()
                for address, attempt in self.addresses.due():
                    if len(running) >= (MAX_GREETINGS if attempt.is_fresh else MAX_OLD_GREETINGS):
                        break  # the fresh ones come first
                    attempt.begin()
                    task = group.create_task(self._greet(address, attempt), name=f"greet {address}")
                    running.add(task)
                    task.add_done_callback(end)

    def _look_at_links(self) -> None:
        """Where an address of ours is gone, look for other paths to the peers reached from it."""
        self.addresses.recall(self._works)
        if not all(self._peers.get(node) for node in self._present() & self._others()):
            self.addresses.ask_around()
        lost = self._lost.among(self._peers.sources())
        for peer in self._peers.strand(lost):
            log.info("link_stranded", extra={"node": short(peer.node), "source": peer.source})
            self.addresses.note(peer.address)
            for address in dialable_addresses(peer.addresses):
                self.addresses.note(address)

    def _look_for_other_paths(self) -> None:
        """Say hello at every address that a peer reports, before anything runs over its link."""
        before = self._addresses_seen
        self._addresses_seen = {peer.node: peer.addresses for peer in self._peers}
        for peer in self._peers:
            if peer.addresses != before.get(peer.node, ()):
                for address in set(dialable_addresses(peer.addresses)) - set(peer.paths()):
                    if not self.addresses.note_new(address):
                        self.addresses.hasten(address, unless_tried_within_s=FIRST_RETRY_S)

    async def _greet(self, address: Address, attempt: Attempt) -> None:
        try:
            connected = partial(attempt.reach, Reached.CONNECTED)
            certificate = await peek_certificate(address, HELLO_TIMEOUT_S, connected)
            node = node_id_of(certificate)
            attempt.reach(Reached.GREETED)
            channels = PeerChannels(self._identity, address, certificate)
            try:
                if node == self._identity.node_id:
                    attempt.is_ours = await self._is_this_daemon(address, channels)
                    if not attempt.is_ours:
                        attempt.again_in(clones.AGAIN_S)
                else:
                    await self._meet(node, address, certificate, channels, attempt)
            finally:
                await channels.close()
            attempt.succeed()
        except ConnectionRefusedByPeerError as error:
            attempt.reach(Reached.REFUSED)
            attempt.fail()
            log.debug("greeting_failed", extra={"address": str(address), "reason": error.message})
        except JupiterError as error:
            attempt.fail()
            log.debug("greeting_failed", extra={"address": str(address), "reason": error.message})
        except grpc.aio.AioRpcError as error:
            attempt.fail() if error.code() in _UNANSWERED else attempt.succeed()
            log.debug("greeting_failed", extra={"address": str(address), "reason": error.details()})
        except Exception:  # whatever a stranger says, it must not end this daemon
            log.exception("greeting_failed", extra={"address": str(address)})
        finally:
            attempt.end()

    async def _is_this_daemon(self, address: Address, channels: PeerChannels) -> bool:
        seen, hello = self._replica.clones, self.hello(self._identity.node_id)
        hello.greeting = secrets.token_hex(8)
        seen.greets(hello.greeting)
        reply = await channels.heartbeat.Hello(hello, timeout=HELLO_TIMEOUT_S)
        where, is_news = str(address), not seen.is_seen
        is_itself = seen.is_answered_by_itself(reply.is_caller, where)
        return is_itself or self._meet_clone(where, is_news=is_news)

    def is_caller(self, node: NodeId, greeting: str, where: str) -> bool:
        """Say whether it is this daemon that calls, and take note of a clone that does."""
        if node != self._identity.node_id or not greeting:
            return False
        seen, is_news = self._replica.clones, not self._replica.clones.is_seen
        is_itself = seen.is_greeted_by_itself(greeting, where)
        return is_itself or self._meet_clone(where, is_news=is_news)

    def _meet_clone(self, where: str, *, is_news: bool) -> bool:
        """Say that it isn't this daemon."""
        self._replica.clones.met(now_s())
        if is_news:
            log.error("clone_met", extra={"address": where})
            self._effects.on_clone()
        return False

    async def _meet(
        self,
        node: NodeId,
        address: Address,
        certificate: bytes,
        channels: PeerChannels,
        attempt: Attempt,
    ) -> None:
        reply, theirs = await self._say_hello(node, channels)
        self.seen.note(theirs)
        known_member = self._is_member(node)
        if theirs.cluster != self._replica.cluster:
            self.seen.note_outsider(Outsider(theirs, address))
        is_cloned = known_member and self.cloned.note(node, address, reply)
        if is_cloned or await self._effects.on_met(node, theirs, channels):
            attempt.again_in(clones.AGAIN_S if is_cloned else SOON_S)
            return
        meeting, reason = meet(self._summary(), theirs, known_member)
        if meeting is Meeting.SAME and known_member:
            is_another = await self._take_path(node, address, certificate, reply)
            if is_another or attempt.is_seldom:  # at first it is asked for other addresses
                attempt.put_off(node)
            self.joining.pending_reason = ""
            self._note_addresses(reply.member_addresses)
        elif self.joining.token is not None and theirs.cluster != self._replica.cluster:
            if theirs.cluster == self.joining.token.cluster:
                await self.joining.use_token(node, theirs, channels)
                attempt.again_in(SOON_S)
        elif meeting in (Meeting.JOIN_THEIRS, Meeting.PENDING):
            if meeting is Meeting.PENDING and not self.joining.approval.words:
                self.joining.set_pending(reason)
            wait_s = await self.joining.ask_at(node, address, theirs, channels)
            attempt.again_in(wait_s)
        if meeting is Meeting.SAME:
            await self._reconcile(node, channels, reply, attempt)
        log.debug("met", extra={"node": short(node), "meeting": meeting.name, "reason": reason})

    async def _say_hello(
        self, node: NodeId, channels: PeerChannels
    ) -> tuple[peer_pb2.HelloReply, Summary]:
        # A stranger's answer isn't believed, nor may it be large: so on the channel for small ones.
        reply = await channels.heartbeat.Hello(self.hello(node), timeout=HELLO_TIMEOUT_S)
        theirs = from_message(reply.summary)
        if theirs.cluster in self._summary().absorbed and not self._is_member(node):
            # Its cluster is a part of ours: now that it has named it, it may know.
            hello = self.hello(node, theirs.cluster)
            await channels.heartbeat.Hello(hello, timeout=HELLO_TIMEOUT_S)
        return reply, theirs

    async def _take_path(
        self, node: NodeId, address: Address, certificate: bytes, reply: peer_pb2.HelloReply
    ) -> bool:
        """Link a member, or add a path to one whose link works; return whether a path was added."""
        # First: between the look at what works and the link nobody else may link it.
        port = await self._members_port(node, address.host, sanitized_port(reply.members_port))
        working = self._working_link(node, address, reply.run_nonce)
        if working is not None:
            self._peers.learn(working, address)
            return True
        name = sanitized_text(reply.name) or self._replica.state.members[node].name
        peer = await self._peers.link(node, name, address, certificate, port)
        peer.run_nonce = reply.run_nonce
        return False

    async def _members_port(self, node: NodeId, host: str, port: int) -> int:
        """Return the port that a member keeps for members; 0 where it can't be reached there.

        Each connection would else try it first, and wait where a firewall drops what it sends.
        """
        peer = self._peers.get(node)
        if not port or (peer is not None and peer.channels.members_port == port):
            return port
        is_reached = await connect_time_s(Address(host, port), MEMBERS_PORT_S) is not None
        return port if is_reached else 0

    async def _reconcile(
        self, node: NodeId, channels: PeerChannels, reply: peer_pb2.HelloReply, attempt: Attempt
    ) -> None:
        """If one node alone takes the other for a member, exchange the entries that say why."""
        is_known = self._is_member(node)
        if not (is_known and reply.member):
            await self._effects.on_unlike(node, channels.control, reply)
        if not is_known and self._is_member(node):
            attempt.again_in(SOON_S)

    def _note_addresses(self, addresses: Iterable[str]) -> None:
        """Add the addresses of others that a member reports; known ones aren't hastened."""
        if all(self._peers.get(node) for node in self._others()):
            return
        for address in dialable_addresses(addresses, MAX_MEMBER_ADDRESSES):
            self.addresses.note_new(address)

    def _others(self) -> frozenset[NodeId]:
        return frozenset(self._replica.state.members) - {self._identity.node_id}

    def _works(self, node: NodeId) -> bool:
        """Say whether heartbeats arrive in both directions between this node and another."""
        peer = self._peers.get(node)
        return peer is not None and now_s() - min(peer.answered_s, peer.heard_s) < WORKING_S

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

    def hello(self, node: NodeId, cluster: ClusterId | None = None) -> peer_pb2.HelloRequest:
        """Return this node's hello; a stranger gets only a part, of its own cluster at most.

        Args:
            node: whose address it is.
            cluster: the one that it has said it is in.
        """
        summary = self._summary()
        said = summary if self._is_member(node) else summary.for_stranger(cluster)
        return peer_pb2.HelloRequest(
            protocol=PROTOCOL, summary=to_message(said), port=self.joining.port
        )

    def _is_member(self, node: NodeId) -> bool:
        return node in self._replica.state.members
