"""What this node itself holds of samples: the answer to another member, and the first of our own.

Owns the form of the answer and its bounds. Asks nobody; doesn't know who asks, or what is shown.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from jupiterd.cycle.data.document_index import DocumentSpan
from jupiterd.cycle.data.sample_index import SamplePosition
from jupiterd.daemon.catalog.sample_locations import SHARDS, Output, by_artifact, outputs_of
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import CorruptArtifactError, NotFoundError
from jupiterd.ids import ArtifactId, short
from jupiterd.rpc import peer_pb2
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.sample_lookup import (
    document_at,
    document_of,
    find_samples,
    read_sample,
    some_samples,
)

MIN_DIGITS = 4
SHOWN_CHARACTERS = 400
"""Characters of a text that are sent and shown; the rest is in the artifact."""

LOOKED_AT_CHARACTERS = 4_000
"""So much where people look at what a phase has made; that is all of what generators write."""

SOME, MANY = 5, 40
"""Samples of a batch sent by default to people who look at what a phase has made; and at most."""

MAX_REQUESTED = 64
MAX_RECORDS_BYTES = 1 << 20
"""Of one answer; a record for which there is no room isn't sent."""

IS_SAMPLE = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},64}}").fullmatch
IS_WHOLE = re.compile(r"[0-9a-f]{64}").fullmatch

Question = TypeVar("Question")
Found = TypeVar("Found")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TraceAnswer:
    """What this node's store has of a request."""

    reply: peer_pb2.TraceReply
    damaged: frozenset[ArtifactId]
    """Artifacts that couldn't be read, or not completely."""


async def trace_for_member(
    replica: Replica, store: ArtifactStore, request: peer_pb2.TraceRequest
) -> peer_pb2.TraceReply:
    """Answer another member; as `trace_here`."""
    outputs = replica.derived(outputs_of)
    return (await asyncio.to_thread(trace_here, store, outputs, request)).reply


def trace_here(
    store: ArtifactStore, outputs: list[Output], request: peer_pb2.TraceRequest
) -> TraceAnswer:
    """Return what this node's store has of a request; reads the disk."""
    local = _LocalSamples(store, outputs)
    if request.batch:
        reply = peer_pb2.TraceReply(
            samples=_within_bounds(local.some_of(request.batch, request.most))
        )
    elif request.shards:
        reply = peer_pb2.TraceReply(token=local.token(request.shards, request.offset))
    else:
        reply = peer_pb2.TraceReply(samples=_within_bounds(local.samples(request.samples)))
    return TraceAnswer(reply, frozenset(local.damaged))


def _within_bounds(found: Iterable[peer_pb2.TracedSample]) -> Iterator[peer_pb2.TracedSample]:
    room_bytes = MAX_RECORDS_BYTES
    for traced in found:
        room_bytes -= len(traced.record)
        if room_bytes < 0:
            traced.record = b""
        yield traced


class _LocalSamples:
    """What this node has; every method but the first reads the disk.

    What is damaged of it is noted and says nothing; the rest does all the same.
    """

    def __init__(self, store: ArtifactStore, outputs: list[Output]) -> None:
        self._store = store
        self._batches = by_artifact(outputs)
        self._shards = dict.fromkeys(each.artifact for each in outputs if each.name == SHARDS)
        self.damaged: set[ArtifactId] = set()

    def token(self, wanted: str, offset: int) -> peer_pb2.TracedToken | None:
        shards = ArtifactId(wanted)
        if shards not in self._shards:
            return None
        if (found := self._read(shards, document_at, offset)) is None:
            return None
        document, tokens = found
        packed = None if document is None else _packed(shards, document)
        return peer_pb2.TracedToken(tokens=tokens, document=packed)

    def some_of(self, wanted: str, most: int) -> Iterator[peer_pb2.TracedSample]:
        """Yield a few samples of a batch; none where it isn't here."""
        batch = ArtifactId(wanted)
        if batch not in self._batches:
            return
        for sample, reason in self._read(batch, some_samples, min(most or SOME, MANY)) or ():
            shown = replace(sample, text=sample.text[:LOOKED_AT_CHARACTERS])
            yield peer_pb2.TracedSample(
                id=sample.id,
                record=shown.to_json().encode(),
                text_bytes=len(sample.text.encode()),
                batches=[batch],
                reason=reason,
            )

    def samples(self, wanted: Sequence[str]) -> Iterator[peer_pb2.TracedSample]:
        """Yield what is known of each of these ids, and of a beginning the ids that begin so."""
        for each in filter(IS_SAMPLE, wanted[:MAX_REQUESTED]):
            if IS_WHOLE(each):
                yield self._sample(each)
            else:
                ids = {place.id for _, place in self._places(each)}
                yield from (peer_pb2.TracedSample(id=one) for one in sorted(ids))

    def _sample(self, sample_id: str) -> peer_pb2.TracedSample:
        traced = peer_pb2.TracedSample(id=sample_id, packed=self._packings(sample_id))
        for artifact, place in self._places(sample_id):
            if not traced.record:
                sample = self._read(artifact, read_sample, place)
                if sample is None:
                    continue  # it isn't named either: the next one's record would pass for its
                shown = replace(sample, text=sample.text[:SHOWN_CHARACTERS])
                traced.record = shown.to_json().encode()
                traced.text_bytes = len(sample.text.encode())
            traced.batches.append(artifact)
        return traced

    def _places(self, beginning: str) -> Iterator[tuple[ArtifactId, SamplePosition]]:
        """Yield where the samples stand whose ids begin so; in what the filters kept first."""
        for artifact in self._batches:
            for place in self._read(artifact, find_samples, beginning) or ():
                yield artifact, place

    def _packings(self, sample_id: str) -> Iterator[peer_pb2.TracedDocument]:
        for shards in self._shards:
            if document := self._read(shards, document_of, sample_id):
                yield _packed(shards, document)

    def _read(
        self, artifact: ArtifactId, read: Callable[[Path, Question], Found], question: Question
    ) -> Found | None:
        """Return what an artifact's folder says; None where it isn't here, or damaged."""
        try:
            return read(self._store.path(artifact), question)
        except NotFoundError:
            return None
        except CorruptArtifactError as error:
            if artifact not in self.damaged:
                extra = {"artifact": short(artifact), "reason": error.message}
                log.warning("samples_damaged", extra=extra)
            self.damaged.add(artifact)
            return None


def _packed(shards: ArtifactId, document: DocumentSpan) -> peer_pb2.TracedDocument:
    return peer_pb2.TracedDocument(
        shards=shards,
        sample=document.sample_id,
        number=document.number,
        first=document.first,
        end=document.end,
    )
