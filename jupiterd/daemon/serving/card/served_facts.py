"""What clients are told of a model beside its name: OpenAI's form has no place for it.

Owns putting together what the ledger, the model's own files and the members tell, and what is kept
of it between two questions. Doesn't know HTTP, nor what clients do with it.

| field | what it is |
|---|---|
| chat | it has a chat template; else it completes text |
| context_tokens | of a prompt and its answer together |
| node | the name of the machine that answers, or those of several |
| loaded | it answers at once |
| others | see `ledger_fields` |
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, cast

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.engine_memory import model_context
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import NodeServing
from jupiterd.cycle.data.tokenizer_identity import TEMPLATE_FILE
from jupiterd.daemon.serving.card.ledger_fields import ledger_fields
from jupiterd.daemon.serving.served_names import KnowsState
from jupiterd.ids import ArtifactId, NodeId

CONFIG: Final = "config.json"
TOKENIZER: Final = "tokenizer_config.json"
MOST_BYTES: Final = 4 << 20
MOST_KEPT: Final = 64
"""Models whose files were looked into."""


class ReadsFiles(Protocol):
    """Reads a small file of an artifact, wherever it lies; `ArtifactCache` is it."""

    async def read(self, artifact: ArtifactId, path: str, most_bytes: int) -> bytes | None:
        """Return the file; None where it can't be had."""
        ...


class TellsOfModels(Protocol):
    """Says what clients are told; `ServedFacts` is it."""

    async def of(self, model: ServedModel) -> Mapping[str, Any]:
        """Return all that is known; fields of which nothing is known are left out."""
        ...


class ServedFacts:
    """Tells what is known of models."""

    def __init__(
        self,
        replica: KnowsState,
        files: ReadsFiles,
        serving: Callable[[], Mapping[NodeId, NodeServing]],
    ) -> None:
        """`serving` returns what each member serves."""
        self._replica, self._files, self._serving = replica, files, serving
        self._kept: dict[ArtifactId, Mapping[str, Any]] = {}

    async def of(self, model: ServedModel) -> dict[str, Any]:
        """Return all that is known; fields of which nothing is known are left out."""
        if model.artifact is None:
            return await self._in_folder(Path(model.folder or ""))
        told = ledger_fields(self._replica.state, model.artifact)
        told |= await self._in_files(model.artifact)
        return told | where_it_answers(self._replica.state, self._serving(), model.artifact)

    async def _in_files(self, artifact: ArtifactId) -> Mapping[str, Any]:
        """Return what its files say; they never change, so that they are read once."""
        if (kept := self._kept.get(artifact)) is not None:
            return kept
        names = (CONFIG, TOKENIZER, TEMPLATE_FILE)
        read = [await self._files.read(artifact, name, MOST_BYTES) for name in names]
        if read[0] is None:  # nobody in reach has it
            return {}
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[artifact] = found = facts_in(*read)
        return found

    async def _in_folder(self, folder: Path) -> dict[str, Any]:
        names = (CONFIG, TOKENIZER, TEMPLATE_FILE)
        read = await asyncio.gather(*(asyncio.to_thread(_read, folder / name) for name in names))
        return dict(facts_in(*read))


def facts_in(
    config: bytes | None, tokenizer: bytes | None, template: bytes | None
) -> Mapping[str, Any]:
    """Return what a model's small files say of it."""
    has_template = template is not None or bool(_object(tokenizer).get("chat_template"))
    return {"chat": has_template, "context_tokens": model_context(_object(config))}


def where_it_answers(
    state: State, serving: Mapping[NodeId, NodeServing], artifact: ArtifactId
) -> dict[str, Any]:
    """Return on which machines a model answers, and whether it does so at once."""
    rows = [
        (node, row)
        for node, each in serving.items()
        for row in each.models
        if row.artifact == artifact
    ]
    names = {state.members[node].name for node, row in rows if row.is_ready}
    told: dict[str, Any] = {"loaded": bool(names)}
    return told | ({"node": ", ".join(sorted(names))} if names else {})


def _object(data: bytes | None) -> Mapping[str, Any]:
    try:
        found: object = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return None
