"""What this node itself holds of samples: the answer to another member, and the first of our own.

Owns the form of the answer and its bounds. Asks nobody; doesn't know who asks, or what is shown.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from jupiterd.cycle.document_index import Document
from jupiterd.daemon.sample_places import SHARDS, Output, Samples, outputs_of
from jupiterd.ids import ArtifactId
from jupiterd.rpc import peer_pb2
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.sample_lookup import document_at, document_of

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

MIN_DIGITS = 4
SHOWN_CHARACTERS = 400
"""So much of a text is told and shown; the rest is in the artifact."""

MAX_ASKED = 64
MAX_RECORDS_BYTES = 1 << 20
"""Of one answer; a record that has no room isn't told."""

IS_SAMPLE = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},64}}").fullmatch
IS_WHOLE = re.compile(r"[0-9a-f]{64}").fullmatch


async def trace_for_member(node: "Node", request: peer_pb2.TraceRequest) -> peer_pb2.TraceReply:
    """Answer another member; as `trace_here`."""
    outputs = node.journal.derived(outputs_of)
    return await asyncio.to_thread(trace_here, node.library.store, outputs, request)


def trace_here(
    store: ArtifactStore, outputs: list[Output], request: peer_pb2.TraceRequest
) -> peer_pb2.TraceReply:
    """Return what lies here of what is asked for; reads the disk.

    Raises:
        CorruptArtifactError: a file is damaged.
    """
    held = _Held(store, outputs)
    if request.shards:
        return peer_pb2.TraceReply(token=held.token(request.shards, request.offset))
    reply, room_bytes = peer_pb2.TraceReply(), MAX_RECORDS_BYTES
    for wanted in filter(IS_SAMPLE, request.samples[:MAX_ASKED]):
        for traced in [held.sample(wanted)] if IS_WHOLE(wanted) else held.beginning(wanted):
            room_bytes -= len(traced.record)
            if room_bytes < 0:
                traced.record = b""
            reply.samples.append(traced)
    return reply


class _Held:
    """What this node has; every method but the first reads the disk."""

    def __init__(self, store: ArtifactStore, outputs: list[Output]) -> None:
        self._store = store
        self._samples = Samples(store, outputs)
        self._shards = dict.fromkeys(each.artifact for each in outputs if each.name == SHARDS)

    def token(self, wanted: str, offset: int) -> peer_pb2.TracedToken | None:
        shards = ArtifactId(wanted)
        if shards not in self._shards or not self._store.holds(shards):
            return None
        document, tokens = document_at(self._store.path(shards), offset)
        packed = None if document is None else _packed(shards, document)
        return peer_pb2.TracedToken(tokens=tokens, document=packed)

    def beginning(self, digits: str) -> list[peer_pb2.TracedSample]:
        """Return the samples that begin so, nothing but their ids."""
        return [peer_pb2.TracedSample(id=each) for each in sorted(self._samples.find(digits))]

    def sample(self, sample_id: str) -> peer_pb2.TracedSample:
        traced = peer_pb2.TracedSample(id=sample_id, packed=self._packings(sample_id))
        if places := self._samples.find(sample_id).get(sample_id):
            sample = self._samples.read(*places[0])
            shown = replace(sample, text=sample.text[:SHOWN_CHARACTERS])
            traced.record = shown.to_json().encode()
            traced.text_bytes = len(sample.text.encode())
            traced.batches.extend(batch[0].artifact for _, batch in places)
        return traced

    def _packings(self, sample_id: str) -> Iterator[peer_pb2.TracedDocument]:
        for shards in filter(self._store.holds, self._shards):
            if document := document_of(self._store.path(shards), sample_id):
                yield _packed(shards, document)


def _packed(shards: ArtifactId, document: Document) -> peer_pb2.TracedDocument:
    return peer_pb2.TracedDocument(
        shards=shards,
        sample=document.sample_id,
        number=document.number,
        first=document.first,
        end=document.end,
    )
