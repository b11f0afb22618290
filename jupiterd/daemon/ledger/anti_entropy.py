"""Making two nodes' ledgers equal: each sends what the other lacks.

Owns when and with whom. Doesn't know what entries say; the replica checks them.
"""

import asyncio
import contextlib
import logging

import grpc

from jupiterd.cluster.ledger.ledger import Entry
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.snapshot_transfer import fetch_snapshot, to_wire
from jupiterd.daemon.links.peers import Peers
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId, short
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

log = logging.getLogger(__name__)

EXCHANGE_TIMEOUT_S = 10.0
BATCH_BYTES = 1 << 20
COPY_TIMEOUT_S = 1.0
UNITE_TIMEOUT_S = 2.0


class AntiEntropy:
    """One exchange with each peer at a time; one requested meanwhile runs after it."""

    def __init__(self, replica: Replica, peers: Peers, group: asyncio.TaskGroup) -> None:
        self._replica = replica
        self._peers = peers
        self._group = group
        self._running: set[NodeId] = set()
        self._again: set[NodeId] = set()
        self._news = asyncio.Event()

    def request(self, node: NodeId) -> None:
        """See to it that an exchange with this peer begins after now."""
        if node in self._running:
            self._again.add(node)
        elif self._peers.get(node) is not None:
            self._running.add(node)
            self._group.create_task(self._run(node), name=f"exchange {short(node)}")

    def request_all(self) -> None:
        """Exchange with every linked member."""
        for peer in self._peers:
            if peer.node in self._replica.state.members:
                self.request(peer.node)

    async def spread(self, entry: Entry) -> int:
        """Send an entry of ours to everybody; return how many nodes are known to have it.

        Waits for one other node, but not for long: copies are a status, not a condition.
        """
        self.request_all()
        writer = str(entry.writer)

        def copies() -> int:
            return 1 + sum(peer.tips.get(writer, 0) >= entry.index for peer in self._peers)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COPY_TIMEOUT_S):
                while copies() == 1 and any(map(self._may_answer, self._running)):
                    await self._news.wait()
        return copies()

    def _may_answer(self, node: NodeId) -> bool:
        """Say whether it is worth waiting for a node: one that has just been lost won't answer."""
        peer = self._peers.get(node)
        return peer is not None and peer.heard_s >= peer.troubled_s

    async def reconcile(self, node: NodeId, peer: PeerStub, reply: peer_pb2.HelloReply) -> None:
        """Exchange the entries that say why only one of two nodes takes the other for a member."""
        state = self._replica.state
        if not reply.member and self._replica.node in state.members:
            await self._ask_roster(peer)
        if node in state.members:
            return
        if state.roster.known(node) is not None:
            await self.send_roster(peer)  # it was away when it was removed
        elif reply.member:
            await self._pull(peer)

    async def send_roster(self, peer: PeerStub) -> None:
        """Send a removed node the entries and roster it lacks, and take nothing from it."""
        cluster = self._replica.cluster
        try:
            question = peer_pb2.ExchangeRequest(
                cluster=cluster, have=to_wire(self._replica.saved_tips)
            )
            reply = await peer.Exchange(question, timeout=COPY_TIMEOUT_S)
            have = {tip.writer: tip.index for tip in reply.have}
            roster = peer_pb2.ExchangeRequest(
                cluster=cluster,
                entries=self._replica.lacking(have, BATCH_BYTES)[0],
                roster=self._replica.roster_lacking(have),
            )
            await peer.Exchange(roster, timeout=COPY_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            log.debug("not_told", extra={"reason": error.details()})

    async def unite(self, nodes: frozenset[NodeId]) -> None:
        """Take in what every one of these nodes holds, as far as they answer in time."""
        exchanges = [self._all(node) for node in nodes if self._peers.get(node) is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNITE_TIMEOUT_S):
                await asyncio.gather(*exchanges, return_exceptions=True)

    async def answer(self, request: peer_pb2.ExchangeRequest) -> peer_pb2.ExchangeReply:
        """Take in what a peer sent and return what it lacks."""
        if request.cluster == self._replica.cluster:
            await self._replica.absorb(list(request.entries))
            await self._replica.witness(list(request.roster))
        if request.cluster != self._replica.cluster:  # perhaps since just now: we may have moved
            return peer_pb2.ExchangeReply()
        have = {tip.writer: tip.index for tip in request.have}
        entries, more = self._replica.lacking(have, BATCH_BYTES)
        return peer_pb2.ExchangeReply(
            have=to_wire(self._replica.saved_tips),
            entries=entries,
            more=more,
            snapshot_needed=self._replica.ledger.has_forgotten(have),
            roster=self._replica.roster_lacking(have),
        )

    async def _run(self, node: NodeId) -> None:
        try:
            self._again.add(node)
            while node in self._again:
                self._again.discard(node)
                await self._all(node)
        except (grpc.aio.AioRpcError, JupiterError) as error:
            log.debug("exchange_failed", extra={"node": short(node), "reason": str(error)})
        except Exception:  # whatever a peer sends, it must not end this daemon
            log.exception("exchange_failed", extra={"node": short(node)})
        finally:
            self._running.discard(node)
            self._again.discard(node)
            self._notify()

    async def _all(self, node: NodeId) -> None:
        while await self._once(node):
            pass

    async def _pull(self, peer: PeerStub) -> None:
        """Take in what a node of this cluster has whom we don't know yet: entries prove themselves.

        Its admission may have been lost with a disk, or not have come here so far. Where it is
        summed up there, a snapshot follows once we know the node: that is its word alone.
        """
        more = True
        try:
            while more:
                have = to_wire(self._replica.saved_tips)
                question = peer_pb2.ExchangeRequest(cluster=self._replica.cluster, have=have)
                reply = await peer.Exchange(question, timeout=EXCHANGE_TIMEOUT_S)
                await self._replica.witness(list(reply.roster))
                more = await self._replica.absorb(list(reply.entries)) > 0 and reply.more
        except (grpc.aio.AioRpcError, JupiterError) as error:
            log.debug("nothing_pulled", extra={"reason": str(error)})

    async def _ask_roster(self, peer: PeerStub) -> None:
        """Learn from a node of this cluster that doesn't know us why that is: perhaps a removal."""
        request = peer_pb2.RosterRequest(cluster=self._replica.cluster)
        try:
            reply = await peer.AskRoster(request, timeout=COPY_TIMEOUT_S)
            await self._replica.witness(list(reply.entries))
        except (grpc.aio.AioRpcError, JupiterError) as error:
            log.debug("roster_not_told", extra={"reason": str(error)})

    async def _once(self, node: NodeId) -> bool:
        peer = self._peers.get(node)
        if peer is None:
            return False
        entries, unsent = self._replica.lacking(peer.tips, BATCH_BYTES)
        request = peer_pb2.ExchangeRequest(
            cluster=self._replica.cluster, have=to_wire(self._replica.saved_tips), entries=entries
        )
        reply = await peer.channels.control.Exchange(request, timeout=EXCHANGE_TIMEOUT_S)
        before, peer.tips = peer.tips, {tip.writer: tip.index for tip in reply.have}
        self._notify()
        learnt = await self._replica.absorb(list(reply.entries))
        await self._replica.witness(list(reply.roster))
        if reply.snapshot_needed:
            with peer.channels.in_use() as channels:
                raw = await fetch_snapshot(channels.control)
            await self._replica.adopt(raw, node)
        # Where a page changed nothing, on either side, the same one would come again for ever.
        was_taken = peer.tips != before
        return (reply.more and learnt > 0) or (unsent and was_taken)

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
