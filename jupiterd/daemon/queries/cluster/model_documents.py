"""The documents of `model list`, `model show` and `model export`.

Owns their keys. Reads the ledger, and small files of artifacts wherever they lie; changes nothing.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import counting_islands
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.contents_file import CONTENTS_FILE, MAX_CONTENTS_BYTES
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.gate.record import VERDICT_FILE
from jupiterd.cycle.generation.completions import (
    COMPLETIONS_FILE,
    MAX_COMPLETIONS_BYTES,
    read_completions,
)
from jupiterd.cycle.phases.view import item_id
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.model_exports import ModelExports
from jupiterd.daemon.catalog.model_catalog import (
    CANDIDATE,
    KnownModel,
    brought_name,
    models_of,
)
from jupiterd.daemon.catalog.training_log import training_log
from jupiterd.daemon.serving.named_models import named_model
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import CorruptArtifactError, JupiterError, NotFoundError
from jupiterd.ids import ArtifactId, CycleId

MAX_VERDICT_BYTES = 4 << 20

_PACKED = ("tokens", "sequences", "documents", "synthetic_documents", "bytes", "tokens_per_byte")


def models_document(
    state: State, artifact_cache: ArtifactCache, exports: ModelExports
) -> dict[str, Any]:
    """Return every model, the newest first."""
    rows = [_row(state, artifact_cache, exports, model) for model in models_of(state)]
    return {"schema": SCHEMA, "models": rows}


async def model_document(
    state: State, artifact_cache: ArtifactCache, exports: ModelExports, wanted: str
) -> dict[str, Any]:
    """Return all that is known of one model; what can't be had just now is None.

    Raises:
        NotFoundError: there is no such model.
        UsageError: several ids begin so.
    """
    model = named_model(state, wanted)
    row = _row(state, artifact_cache, exports, model)
    return {"schema": SCHEMA, "model": row | await details(state, artifact_cache, model)}


async def model_export_document(
    state: State, artifact_cache: ArtifactCache, exports: ModelExports, wanted: str
) -> dict[str, Any]:
    """Return the same, with the folder of its files on this machine, fetched where it isn't here.

    Raises:
        NotFoundError: there is no such model, or nobody in reach has it.
        DiskFullError: there is no room for it here.
    """
    model = named_model(state, wanted)
    try:
        folder = await artifact_cache.ensure_model(model.artifact)
    except NotFoundError as error:
        raise NotFoundError(
            f"nobody in reach has the model {model.name}", "start the nodes that have it"
        ) from error
    row = _row(state, artifact_cache, exports, model)
    document = row | await details(state, artifact_cache, model)
    return {"schema": SCHEMA, "model": document | {"files_at": str(folder)}}


async def details(state: State, artifact_cache: ArtifactCache, model: KnownModel) -> dict[str, Any]:
    """Return the details of one model beyond its row."""
    run = state.cycles[model.run]
    islands = counting_islands(state.cycles, model.run)
    said = _domain_of(state, run)
    log = [] if model.is_of_others else training_log(run, islands)
    return {
        "domain": run.label,
        "title": said["title"],
        "language": said["language"],
        "sources": said["sources"],
        "started_at": "" if run.begun is None else run.begun.started_at,
        "began_with": None if model.is_of_others else _began_with(run),
        "data": None
        if model.is_of_others
        else await data_of(state, artifact_cache, run, model.round),
        "log": [row for row in log if row["round"] <= model.round],
        "verdict_document": await verdict_of(artifact_cache, run, model),
        "completions": await completions_of(artifact_cache, run, model),
        "machines": {each: member.name for each, member in state.members.items()},
    }


async def completions_of(
    artifact_cache: ArtifactCache, run: CycleState, model: KnownModel
) -> list[dict[str, Any]]:
    """Return what a candidate wrote when it was tried out; nothing where that isn't in reach."""
    tried = run.completed.get(
        (model.round, item_id(model.round, Phase.EVALUATE, 0, model.artifact))
    )
    if model.kind != CANDIDATE or tried is None or "scores" not in tried.outputs:
        return []
    data = await _read(
        artifact_cache, tried.outputs["scores"], COMPLETIONS_FILE, MAX_COMPLETIONS_BYTES
    )
    try:
        found = read_completions((data or b"").decode("utf-8", "replace"))
    except CorruptArtifactError:
        return []
    return [
        {"prompt": each.prompt, "text": each.text, "is_looping": each.is_looping} for each in found
    ]


def _began_with(run: CycleState) -> dict[str, str] | None:
    """Return the model whose weights training began with; None where they were drawn."""
    requested = run.started or run.training
    if requested is None or not requested.settings.get("start_from"):
        return None
    return {"name": brought_name(run), "id": str(requested.settings["start_from"])}


def _adapter(run: CycleState) -> dict[str, str] | None:
    """Return of what model a run trains an adapter, and how it was asked for; None: it doesn't."""
    requested = run.started or run.training
    asked = "" if requested is None else str(requested.settings.get("lora") or "")
    return {"base": brought_name(run), "options": asked} if asked else None


def _row(
    state: State, artifact_cache: ArtifactCache, exports: ModelExports, model: KnownModel
) -> dict[str, Any]:
    run = state.cycles[model.run]
    folder = exports.folder(run, model.round, model.artifact) if model.round else None
    is_there = folder is not None and folder.is_dir()
    return model.to_plain() | {
        "adapter": None if model.is_of_others else _adapter(run),
        "held_here": artifact_cache.store.holds(model.artifact),
        "folder": str(folder) if is_there else None,
    }


async def data_of(
    state: State, artifact_cache: ArtifactCache, run: CycleState, number: int
) -> dict[str, Any] | None:
    """Return what a round, or a run, was trained on: counts, and what the shards say they hold."""
    packed = run.completed.get((number, item_id(number, Phase.PACK, 0)))
    if packed is None and run.training is not None:
        made_in = state.cycles.get(CycleId(run.training.data))
        packed = None if made_in is None else made_in.prepared
    if packed is None:
        return None
    shards = packed.outputs["shards"]
    contents = await _read_json(artifact_cache, shards, CONTENTS_FILE, MAX_CONTENTS_BYTES)
    counts = {name: packed.counts[name] for name in _PACKED if name in packed.counts}
    return {"shards": shards, **counts, "contents": contents}


async def verdict_of(
    artifact_cache: ArtifactCache, run: CycleState, model: KnownModel
) -> dict[str, Any] | None:
    """Return verdict.json of a candidate; None where there is none, or none in reach."""
    said = run.verdicts.get(model.round) if model.kind == CANDIDATE else None
    if said is None:
        return None
    return await _read_json(artifact_cache, said.artifact, VERDICT_FILE, MAX_VERDICT_BYTES)


async def _read_json(
    artifact_cache: ArtifactCache, artifact: ArtifactId, path: str, most_bytes: int
) -> dict[str, Any] | None:
    data = await _read(artifact_cache, artifact, path, most_bytes)
    try:
        found = None if data is None else json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def _read(
    artifact_cache: ArtifactCache, artifact: ArtifactId, path: str, most_bytes: int
) -> bytes | None:
    try:
        return await artifact_cache.read(artifact, path, most_bytes)
    except JupiterError:
        return None


def _domain_of(state: State, run: CycleState) -> Mapping[str, Any]:
    """Return what the domain file, or the person who started a run, said of its text.

    No path of anybody's disk is among it: a model card is published.
    """
    from jupiterd.cycle.domain.domain import parse_domain  # 8 MB, idle or not

    nothing: dict[str, Any] = {"title": "", "language": "", "sources": []}
    if run.started is None:
        return nothing | {"sources": _requested_sources(state, run)}
    try:
        domain = parse_domain(run.started.domain_yaml, "domain.yaml")
    except JupiterError:  # of another version
        return nothing
    sources = [
        {
            "name": each.name,
            "kind": each.kind,
            "license": str(getattr(each, "license", "")),
            "address": _address(each.model_dump(mode="json")),
        }
        for each in domain.data_sources
    ]
    return {"title": domain.title, "language": domain.language, "sources": sources}


def _requested_sources(state: State, run: CycleState) -> list[dict[str, str]]:
    """Return what a training run's data set was made of; its licence nobody was asked for."""
    made_in = run.training and state.cycles.get(CycleId(run.training.data))
    if not made_in or made_in.requested is None:
        return []
    requested = made_in.requested
    kind = str(requested.source.get("kind") or "folder")
    address = _address({"kind": kind, "path": requested.source.get("path")})
    return [{"name": requested.name, "kind": kind, "license": "", "address": address}]


def _address(fields: Mapping[str, Any]) -> str:
    """Return where everybody finds a source; empty for what lies on somebody's disk."""
    for name in ("url", "urls", "repository", "path"):
        value = fields.get(name)
        first = value[0] if isinstance(value, list) and value else value
        text = str(first or "")
        if text.startswith(("http://", "https://")):
            return _without_key(text)
        if fields["kind"] == "hugging_face" and text and not PurePosixPath(text).is_absolute():
            return f"https://huggingface.co/datasets/{text}"
    return ""


def _without_key(address: str) -> str:
    """Return an address without the name, password or token that somebody may have put into it."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
