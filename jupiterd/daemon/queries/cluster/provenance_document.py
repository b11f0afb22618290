"""The document of `data why`: where a sample, or the token of a shard, comes from.

Owns its keys. All nodes in reach are asked what they know of samples (`cluster_trace`); changes
nothing.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jupiterd.cluster.facts.facts import CheckpointCommitted, CycleStarted
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.lineage import MAX_DEPTH, Sample
from jupiterd.cycle.domain.source_parts import parts_with
from jupiterd.cycle.phases.view import item_id
from jupiterd.daemon.catalog.cycle_sources import sources_of
from jupiterd.daemon.catalog.sample_locations import Output, shards_meant
from jupiterd.daemon.queries.cluster.cluster_trace import Trace, Traced
from jupiterd.daemon.queries.cluster.local_trace import IS_SAMPLE, IS_WHOLE, MIN_DIGITS
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, short
from jupiterd.rpc import peer_pb2

MAX_PARENTS = 16

_POSITION = re.compile(r"(?P<shards>[^:]{1,200}):(?P<offset>\d{1,15})")
_LIST = "jupiterctl data list shows the rounds whose samples there are"

_DAMAGED = "not all of this node's samples can be read: its log says which artifacts are damaged"

Plain = dict[str, Any]
Known = Mapping[str, Traced]


async def provenance_document(state: State, trace: Trace, wanted: str) -> Plain:
    """Return the whole chain of records of SAMPLE (an id, or its beginning) or SHARDS:OFFSET.

    Raises:
        NotFoundError: nobody in reach knows such a sample, shards or token.
        UsageError: it is neither, or several ids begin so.
    """
    began_s = time.perf_counter()
    answer = await _Question(state, trace).answer(wanted)
    answer["elapsed_ms"] = round(1000 * (time.perf_counter() - began_s), 3)
    return {"schema": SCHEMA, "why": answer}


class _Question:
    """One question."""

    def __init__(self, state: State, trace: Trace) -> None:
        self._trace = trace
        self._generators = _generators(state)
        self._started = {
            run.started.cycle: run.started
            for run in state.cycles.values()
            if run.started is not None
        }
        self._sources = {
            run.requested.cycle: dict(run.requested.source)
            for run in state.cycles.values()
            if run.requested is not None
        }

    async def answer(self, wanted: str) -> Plain:
        if (position := _POSITION.fullmatch(wanted)) is not None:
            return await self._of_token(position["shards"], int(position["offset"]))
        if IS_SAMPLE(wanted):
            return await self._of_sample(wanted)
        raise UsageError(
            f"{wanted} is neither a sample's id nor SHARDS:OFFSET",
            f"give at least {MIN_DIGITS} hex digits of an id, or a run's name and a token's number",
        )

    async def _of_token(self, named: str, offset: int) -> Plain:
        shards = shards_meant(self._trace.outputs, named)
        document = await self._document(shards, offset)
        at = {"offset": offset, **_packed(shards, document)}
        if record := await self._record(document.sample):
            return {"position": at, **record}
        source = self._sources.get(shards.run)
        if source is None:
            raise await self._not_found(document.sample)
        about = {"id": document.sample, "source": source.get("path")}
        return {"position": at, "sample": about, "data_set": source, **_nothing_more(shards)}

    async def _document(self, shards: Output, offset: int) -> peer_pb2.TracedDocument:
        """Return the document of a token of shards; raises NotFoundError where there is none."""
        token = await self._trace.token(shards.artifact, offset)
        label = f"shards {short(shards.artifact)}"
        if token is None:
            is_silent = shards.node_name in await self._trace.silent()
            hint = f"start {shards.node_name}, which made them" if is_silent else self._hint()
            raise NotFoundError(f"{label} of {shards.label} are on no node in reach", hint)
        if not token.HasField("document"):
            raise NotFoundError(
                f"{label} have {token.tokens:,} tokens, and none is number {offset:,}"
                if token.tokens
                else f"nobody noted which sample each token of {label} is"
            )
        return token.document

    async def _of_sample(self, beginning: str) -> Plain:
        ids = [beginning] if IS_WHOLE(beginning) else await self._trace.ids(beginning)
        if len(ids) > 1:
            could = ", ".join(each[: len(beginning) + 4] for each in ids[:5])
            raise UsageError(f"{beginning} could be any of {could}", "give more of the id")
        record = await self._record(ids[0]) if ids else {}
        if not record:
            raise await self._not_found(beginning)
        return {"position": None, **record}

    async def _not_found(self, wanted: str) -> NotFoundError:
        silent = await self._trace.silent()
        missing = f"what {', '.join(silent)} made isn't all in reach: start it"
        hint = missing if silent else self._hint()
        return NotFoundError(f"no sample in reach is called {wanted[:16]}", hint)

    def _hint(self) -> str:
        return _DAMAGED if self._trace.damaged else _LIST

    async def _record(self, sample_id: str) -> Plain:
        """Return what is known of a sample and of what it was made from; empty: nothing is."""
        known: dict[str, Traced] = {}
        wanted = {sample_id}
        for _ in range(1 + MAX_DEPTH):
            fresh = await self._trace.samples(wanted - known.keys())
            known |= fresh
            wanted = {parent for traced in fresh.values() for parent in _parents(traced)}
        return self._chain(sample_id, known)

    def _chain(self, sample_id: str, known: Known, depth: int = 0) -> Plain:
        traced = known.get(sample_id)
        if traced is None:
            return {}
        about = asdict(traced.sample)
        about["text_begins"] = about.pop("text")
        messages, _ = about.pop("messages"), about.pop("first_answer")
        if messages:
            about["conversation"] = f"{len(messages)} messages"
        about["text_bytes"] = traced.text_bytes
        parents = _parents(traced) if depth < MAX_DEPTH else ()
        return {
            "sample": about,
            "seen": [each.to_plain() for each in self._seen(traced)],
            "packed": self._packings(traced),
            "generator": self._generators.get(traced.sample.generator),
            "parents": [
                self._chain(parent, known, depth + 1) or {"sample": {"id": parent}, "missing": True}
                for parent in parents
            ],
        }

    def _seen(self, traced: Traced) -> list[Output]:
        """Return where a sample is, and who collected it for old rounds, where that was let go."""
        found = self._trace.batches_of(traced)
        filtered = {(output.run, output.round) for output in found if output.name == "kept"}
        gone = [
            output
            for output in self._trace.outputs
            if output.is_passing
            and output.name in _COLLECTED
            and (output.run, output.round) in filtered
            if traced.sample.kind == "real" and output not in found
        ]
        items = {
            run: _collecting(self._started[run], traced.sample)
            for run in {each.run for each in gone}
        }
        return found + [each for each in gone if each.item.partition("/")[2] in items[each.run]]

    def _packings(self, traced: Traced) -> list[Plain]:
        documents = {ArtifactId(document.shards): document for document in traced.packed}
        return [
            _packed(output, documents[output.artifact])
            for output in self._trace.outputs
            if output.artifact in documents
        ]


_COLLECTED = frozenset({"documents", "train"})
"""Outputs in which a collected text lies; of a cycle's age, one or the other."""


def _parents(traced: Traced) -> tuple[str, ...]:
    return traced.sample.parents[:MAX_PARENTS]


def _collecting(started: CycleStarted, sample: Sample) -> set[str]:
    """Return the items of any round, without its number, that may have read a sample."""
    found: set[str] = set()
    for number, source in enumerate(sources_of(started)):
        if source.name == sample.source:
            item = item_id(1, Phase.COLLECT, number).partition("/")[2]
            found |= {item, *(f"{item}/{n}" for n in parts_with(source, sample.source_uri))}
    return found


def _nothing_more(shards: Output) -> Plain:
    return {"seen": [shards.to_plain()], "packed": [], "generator": None, "parents": []}


def _packed(output: Output, document: peer_pb2.TracedDocument) -> Plain:
    return {
        "run": output.run,
        "name": output.label,
        "round": output.round,
        "shards": output.artifact,
        "document": document.number,
        "first": document.first,
        "end": document.end,
    }


def _generators(state: State) -> Mapping[str, Plain]:
    """Return each model that was ever made here: artifact id -> which run and round made it."""
    return {
        fact.artifact: {
            "artifact": fact.artifact,
            "run": fact.cycle,
            "name": run.label,
            "round": fact.round,
            "step": fact.step,
        }
        for run in state.cycles.values()
        if is_whole(run)
        for fact in run.canonical_branch()
        if isinstance(fact, CheckpointCommitted)
    }
