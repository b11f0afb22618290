"""What all nodes in reach hold of samples, put together: the same on every node.

Owns whom to ask, how long to wait for an answer, and which of several records counts. Doesn't know
what is made of it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields

import grpc.aio

from jupiterd.cycle.data.lineage import Sample
from jupiterd.daemon.catalog.sample_locations import Output, by_artifact, outputs_of
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.queries.cluster.local_trace import IS_WHOLE, MAX_REQUESTED, SOME, trace_here
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.errors import Bug
from jupiterd.ids import ArtifactId, NodeId, short
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 1.0
"""Of a member: it reads a few pages of its disk."""


@dataclass(frozen=True)
class Traced:
    """One sample, merged from the answers of all nodes that were asked."""

    sample: Sample
    """Its text is cut to what is shown."""
    text_bytes: int
    batches: frozenset[ArtifactId]
    packed: tuple[peer_pb2.TracedDocument, ...]


class Trace:
    """Sends one question to all nodes that may know something; this node answers first."""

    def __init__(
        self,
        replica: Replica,
        store: ArtifactStore,
        peers: Peers,
        alive: Callable[[], AbstractSet[NodeId]],
    ) -> None:
        """Read the ledger; the disk is read by each call, in a thread."""
        self._store, self._peers, self._alive = store, peers, alive
        self.outputs = replica.derived(outputs_of)
        self._batches = by_artifact(self.outputs)
        self._ranks = {artifact: rank for rank, artifact in enumerate(self._batches)}
        self._lasting = frozenset(each.artifact for each in self.outputs if not each.is_passing)
        self.damaged: set[ArtifactId] = set()
        """What this node holds and can't read; the others may."""
        self._answered: set[NodeId] = {replica.node}

    async def token(self, shards: ArtifactId, offset: int) -> peer_pb2.TracedToken | None:
        """Return which document a token belongs to; None where nobody in reach holds the shards."""
        request = peer_pb2.TraceRequest(shards=shards, offset=offset)
        own = await self._here(request)
        replies = [own] if own.HasField("token") else await self._of_members(request)
        return next((reply.token for reply in replies if reply.HasField("token")), None)

    async def ids(self, beginning: str) -> list[str]:
        """Return the ids of the samples that begin so; of many, some."""
        replies = await self._everywhere(peer_pb2.TraceRequest(samples=[beginning]))
        ids = {part.id for reply in replies for part in reply.samples}
        return sorted(each for each in ids if IS_WHOLE(each) and each.startswith(beginning))

    async def samples(self, ids: Iterable[str]) -> dict[str, Traced]:
        """Return what is known of each of these; each call requests MAX_REQUESTED at most."""
        wanted = sorted(filter(IS_WHOLE, ids))
        pieces = (
            wanted[first : first + MAX_REQUESTED] for first in range(0, len(wanted), MAX_REQUESTED)
        )
        found = await asyncio.gather(*map(self._piece, pieces))
        return {each: traced for piece in found for each, traced in piece.items()}

    async def some_of(self, batch: ArtifactId, most: int = SOME) -> list[tuple[Sample, str]]:
        """Return a few samples of a batch, and why each was dropped; none where nobody has it."""
        request = peer_pb2.TraceRequest(batch=batch, most=most)
        own = await self._here(request)
        replies = [own] if own.samples else await self._of_members(request)
        samples = next((reply.samples for reply in replies if reply.samples), [])
        found = ((_record_of(part), part.reason) for part in samples)
        return [(sample, reason) for sample, reason in found if sample is not None][:most]

    async def _piece(self, wanted: list[str]) -> dict[str, Traced]:
        replies = await self._everywhere(peer_pb2.TraceRequest(samples=wanted))
        parts: dict[str, list[peer_pb2.TracedSample]] = {each: [] for each in wanted}
        for part in (part for reply in replies for part in reply.samples if part.id in parts):
            parts[part.id].append(part)
        traced = {each: self._merged(samples) for each, samples in parts.items()}
        return {each: found for each, found in traced.items() if found is not None}

    def batches_of(self, traced: Traced) -> list[Output]:
        """Return the outputs that hold a sample, what the filters kept first."""
        found = (each for artifact, each in self._batches.items() if artifact in traced.batches)
        return [output for outputs in found for output in outputs]

    async def silent(self) -> list[str]:
        """Return the names of nodes that made what isn't here, and didn't answer."""
        return await asyncio.to_thread(self._silent)

    def _silent(self) -> list[str]:
        silent = {
            each.node_name
            for each in self.outputs
            if each.artifact in self._lasting
            if each.node not in self._answered and not self._store.holds(each.artifact)
        }
        return sorted(silent)

    async def _everywhere(self, request: peer_pb2.TraceRequest) -> list[peer_pb2.TraceReply]:
        """Ask this node, and where it doesn't hold everything that lasts, the others too.

        The same goes for what it holds and can't read.
        """
        own = await self._here(request)
        if not self.damaged and await asyncio.to_thread(self._holds_all):
            return [own]
        return [own, *await self._of_members(request)]

    def _holds_all(self) -> bool:
        return all(map(self._store.holds, self._lasting))

    async def _here(self, request: peer_pb2.TraceRequest) -> peer_pb2.TraceReply:
        answer = await asyncio.to_thread(trace_here, self._store, self.outputs, request)
        self.damaged |= answer.damaged
        return answer.reply

    async def _of_members(self, request: peer_pb2.TraceRequest) -> list[peer_pb2.TraceReply]:
        """Return the answers of those in reach, in the order of their ids."""
        alive = self._alive()
        peers = sorted(self._peers, key=lambda peer: peer.node)
        calls = [self._of(peer, request) for peer in peers if peer.node in alive]
        return [reply for reply in await asyncio.gather(*calls) if reply is not None]

    async def _of(self, peer: Peer, request: peer_pb2.TraceRequest) -> peer_pb2.TraceReply | None:
        try:
            with peer.channels.in_use() as channels:
                reply = await channels.control.TraceSamples(request, timeout=ANSWER_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            reason = from_rpc(error, peer.name).message
            log.info("trace_unanswered", extra={"node": short(peer.node), "reason": reason})
            return None
        self._answered.add(peer.node)
        return reply

    def _merged(self, parts: list[peer_pb2.TracedSample]) -> Traced | None:
        """Return all that several nodes know of a sample, with the best record among theirs.

        What the filters kept carries their scores; of equal ones that of the first is taken.
        """
        records = [(part, sample) for part in parts if (sample := _record_of(part)) is not None]
        if not records:
            return None
        best, sample = min(records, key=lambda each: self._rank(each[0]))
        batches = frozenset(ArtifactId(batch) for part in parts for batch in part.batches)
        packed = {document.shards: document for part in parts for document in part.packed}
        return Traced(sample, best.text_bytes, batches, tuple(packed.values()))

    def _rank(self, part: peer_pb2.TracedSample) -> int:
        ranks = (self._ranks.get(ArtifactId(batch)) for batch in part.batches)
        return min((rank for rank in ranks if rank is not None), default=len(self._ranks))


def trace_of(sources: DocumentSources) -> Trace:
    """Return a trace over all nodes of a daemon's cluster."""
    store, alive = sources.artifact_cache.store, sources.view.alive
    return Trace(sources.replica, store, sources.peers, alive)


def _record_of(part: peer_pb2.TracedSample) -> Sample | None:
    """Return a node's record of a sample; None where its answer has none that is valid."""
    try:
        sample = Sample.from_json(part.record.decode())
    except (Bug, UnicodeDecodeError, RecursionError):
        return None
    texts = [getattr(sample, each.name) for each in fields(Sample) if each.type is str]
    is_one = all(isinstance(text, str) for text in (*texts, *sample.parents))
    numbers = (sample.sampler, sample.filter_scores)
    is_one = is_one and all(isinstance(each, dict) for each in numbers)
    return sample if is_one and sample.id == part.id else None
