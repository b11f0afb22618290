"""The document of `data why`: where a sample, or the token of a shard, comes from.

Owns its keys. Reads the ledger and the artifacts of this node; changes nothing.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cluster.state import State
from jupiterd.cycle.document_index import Document
from jupiterd.cycle.lineage import MAX_DEPTH
from jupiterd.daemon.sample_places import SHARDS, Output, Samples, outputs_of, shards_meant
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import short
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.sample_lookup import document_at, document_of

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

SCHEMA = "jupiter/v1"
SHOWN_CHARACTERS = 400
"""So much of a text is shown; the rest is in the artifact."""

MAX_PARENTS = 16
MIN_DIGITS = 4

_POSITION = re.compile(r"(?P<shards>[^:]{1,200}):(?P<offset>\d{1,15})")
_SAMPLE = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},64}}")

Plain = dict[str, Any]


async def why_document(node: "Node", wanted: str) -> Plain:
    """Return the whole chain of records of SAMPLE (an id, or its beginning) or SHARDS:OFFSET.

    Raises:
        NotFoundError: this node knows no such sample, shards or token.
        UsageError: it is neither, or several ids begin so.
    """
    began_s = time.perf_counter()
    asked = _Asked(node.library.store, node.journal.state)
    answer = await asyncio.to_thread(asked.answer, wanted)
    answer["elapsed_ms"] = round(1000 * (time.perf_counter() - began_s), 3)
    return {"schema": SCHEMA, "why": answer}


class _Asked:
    """One question; it reads the ledger at once, and the disk in `answer`."""

    def __init__(self, store: ArtifactStore, state: State) -> None:
        self._store = store
        self._outputs = outputs_of(state)
        self._samples = Samples(store, self._outputs)
        self._generators = _generators(state)
        self._sources = {
            run.requested.cycle: dict(run.requested.source)
            for run in state.cycles.values()
            if run.requested is not None
        }

    def answer(self, wanted: str) -> Plain:
        if (position := _POSITION.fullmatch(wanted)) is not None:
            return self._of_token(position["shards"], int(position["offset"]))
        if _SAMPLE.fullmatch(wanted):
            return self._of_sample(wanted)
        raise UsageError(
            f"{wanted} is neither a sample's id nor SHARDS:OFFSET",
            f"give at least {MIN_DIGITS} hex digits of an id, or a run's name and a token's number",
        )

    def _of_token(self, named: str, offset: int) -> Plain:
        shards = shards_meant(self._outputs, named)
        if not self._store.holds(shards.artifact):
            raise NotFoundError(
                f"shards {short(shards.artifact)} of {shards.label} aren't on this node",
                f"ask on {shards.node_name}, which made them",
            )
        document, tokens = document_at(self._store.path(shards.artifact), offset)
        if document is None:
            raise NotFoundError(
                f"shards {short(shards.artifact)} have {tokens:,} tokens, and none is number "
                f"{offset:,}"
                if tokens
                else f"nobody noted which sample each token of shards {short(shards.artifact)} is"
            )
        at = {"offset": offset, **_packed(shards, document)}
        if record := self._record(document.sample_id):
            return {"position": at, **record}
        made_of = self._sources.get(shards.run)
        if made_of is None:
            raise self._not_found(document.sample_id)
        about = {"id": document.sample_id, "source": made_of.get("path")}
        return {"position": at, "sample": about, "data_set": made_of, **_nothing_more(shards)}

    def _of_sample(self, prefix: str) -> Plain:
        ids = sorted(self._samples.find(prefix))
        if not ids:
            raise self._not_found(prefix)
        if len(ids) > 1:
            could = ", ".join(id_[: len(prefix) + 4] for id_ in ids[:5])
            raise UsageError(f"{prefix} could be any of {could}", "give more of the id")
        return {"position": None, **self._record(ids[0])}

    def _not_found(self, wanted: str) -> NotFoundError:
        away = self._samples.elsewhere()
        hint = f"what {', '.join(away)} made isn't all here: ask there" if away else ""
        return NotFoundError(f"no sample on this node is called {wanted[:16]}", hint)

    def _record(self, sample_id: str, depth: int = 0) -> Plain:
        """Return what is known of a sample and of what it was made from; empty: nothing is."""
        places = self._samples.find(sample_id).get(sample_id)
        if not places:
            return {}
        sample = self._samples.read(*places[0])
        about = asdict(sample)
        text = about.pop("text")
        about["text_bytes"] = len(text.encode("utf-8", "surrogatepass"))
        about["text_begins"] = text[:SHOWN_CHARACTERS]
        parents = sample.parents[:MAX_PARENTS] if depth < MAX_DEPTH else ()
        return {
            "sample": about,
            "seen": [output.to_plain() for _, outputs in places for output in outputs],
            "packed": self._packings(sample_id),
            "generator": self._generators.get(sample.generator),
            "parents": [
                self._record(parent, depth + 1) or {"sample": {"id": parent}, "missing": True}
                for parent in parents
            ],
        }

    def _packings(self, sample_id: str) -> list[Plain]:
        found: list[Plain] = []
        for output in self._outputs:
            if output.name == SHARDS and self._store.holds(output.artifact):
                document = document_of(self._store.path(output.artifact), sample_id)
                found += [_packed(output, document)] if document is not None else []
        return found


def _nothing_more(shards: Output) -> Plain:
    return {"seen": [shards.to_plain()], "packed": [], "generator": None, "parents": []}


def _packed(output: Output, document: Document) -> Plain:
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
        for fact in run.line()
        if isinstance(fact, CheckpointCommitted)
    }
