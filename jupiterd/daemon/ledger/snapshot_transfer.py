"""Fetching a whole ledger from a member: what it has summed up, then the entries behind that.

Owns the calls and their bounds. Doesn't know what entries say, or where a ledger is stored.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from jupiterd.cluster.ledger.ledger import Ledger, parse
from jupiterd.cluster.ledger.snapshot import MAX_SNAPSHOT_BYTES
from jupiterd.daemon.ledger.signature_check import (
    add_verified,
    adopt,
    verified_snapshot,
    witness_verified,
)
from jupiterd.errors import CorruptLedgerError, PeerUnreachableError
from jupiterd.ids import ClusterId, NodeId
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

CHUNK_BYTES = 256 << 10
SNAPSHOT_TIMEOUT_S = 60.0
PAGE_TIMEOUT_S = 10.0
MAX_SNAPSHOTS = 3
"""How often the sender may have forgotten more while it was being asked."""


@dataclass
class FetchedSnapshot:
    """A ledger in memory, and the bytes that keep it on disk."""

    ledger: Ledger
    sender: NodeId
    snapshot: bytes | None = None
    entries: list[bytes] = field(default_factory=list[bytes])
    """The bytes to store; the ledger has the roster entries that came with the snapshot."""


async def chunks_of(raw: bytes) -> AsyncIterator[peer_pb2.SnapshotChunk]:
    """Cut a snapshot into messages."""
    for start in range(0, len(raw), CHUNK_BYTES):
        yield peer_pb2.SnapshotChunk(data=raw[start : start + CHUNK_BYTES])


async def fetch_snapshot(peer: PeerStub) -> bytes:
    """Return a member's snapshot; empty where it holds every entry one by one.

    Raises:
        CorruptLedgerError: it has no end.
    """
    raw = bytearray()
    async for chunk in peer.FetchSnapshot(peer_pb2.SnapshotRequest(), timeout=SNAPSHOT_TIMEOUT_S):
        raw += chunk.data
        if len(raw) > MAX_SNAPSHOT_BYTES:
            raise CorruptLedgerError("a ledger snapshot is too large")
    return bytes(raw)


async def fetch_ledger(peer: PeerStub, sender: NodeId, cluster: ClusterId) -> FetchedSnapshot:
    """Return the ledger of a cluster that has just admitted this node, verified.

    Raises:
        CorruptLedgerError: what came doesn't make a ledger.
        PeerUnreachableError: it forgets faster than it sends.
    """
    fetched = FetchedSnapshot(Ledger(cluster), sender)
    for _ in range(MAX_SNAPSHOTS):
        roster = await _fetch_entries(peer, fetched)
        if roster is None:
            return fetched
        raw = await fetch_snapshot(peer)
        snapshot = await asyncio.to_thread(verified_snapshot, fetched.ledger, raw, sender)
        await asyncio.to_thread(adopt, fetched.ledger, snapshot)
        fetched.snapshot = raw
        fetched.entries.clear()  # it sums up what came before
        _witness_all(fetched.ledger, roster)
    if await _fetch_entries(peer, fetched) is None:
        return fetched
    raise PeerUnreachableError("the ledger changed faster than it could be fetched")


async def _fetch_entries(peer: PeerStub, fetched: FetchedSnapshot) -> list[bytes] | None:
    """Add what isn't summed up.

    Returns:
        The roster entries that come with the snapshot which is needed; None where none is.


    Raises:
        CorruptLedgerError: a page brings nothing new, or there is no end of them.
    """
    size_bytes = 0
    while True:
        request = peer_pb2.ExchangeRequest(
            cluster=fetched.ledger.cluster, have=to_wire(fetched.ledger.tips())
        )
        reply = await peer.Exchange(request, timeout=PAGE_TIMEOUT_S)
        raws = list(reply.entries)
        size_bytes += sum(map(len, raws))
        is_news = await asyncio.to_thread(_add_all, fetched.ledger, raws)
        if (reply.more and not is_news) or size_bytes > MAX_SNAPSHOT_BYTES:
            raise CorruptLedgerError("the ledger that was sent has no end")
        fetched.entries += raws
        if reply.snapshot_needed or not reply.more:
            return list(reply.roster) if reply.snapshot_needed else None


def _add_all(ledger: Ledger, raws: list[bytes]) -> bool:
    """Add the entries; say whether any was new."""
    return sum(add_verified(ledger, parse(raw)) for raw in raws) > 0


def _witness_all(ledger: Ledger, raws: list[bytes]) -> None:
    """Keep whom these entries admit and remove, as far as the snapshot says the same."""
    for raw in raws:
        with contextlib.suppress(CorruptLedgerError):
            witness_verified(ledger, parse(raw))


def to_wire(tips: Mapping[str, int]) -> list[peer_pb2.WriterTip]:
    """Return how many entries of each writer are here, for the wire."""
    return [peer_pb2.WriterTip(writer=writer, index=index) for writer, index in tips.items()]
