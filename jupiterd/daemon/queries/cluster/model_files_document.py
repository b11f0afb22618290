"""The document of `model eval`: the folder of a model's files on this machine.

Owns its keys. Names are those that a client may chat with, `promoted` and `base` among them.
"""

from typing import Any

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.model_catalog import BASE
from jupiterd.daemon.serving.named_models import named_model
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError


async def model_files_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return which model is meant and where its files lie, fetched where they aren't here.

    Raises:
        NotFoundError: there is no such model, or not yet, or nobody in reach has it.
        UsageError: several ids begin so.
        DiskFullError: there is no room for it here.
    """
    meant = named_model(state, wanted)
    try:
        folder = await artifact_cache.ensure_model(meant.artifact)
    except NotFoundError as error:
        raise NotFoundError(
            f"nobody in reach has the model {wanted}", "start the nodes that have it"
        ) from error
    name = wanted if meant.kind == BASE else meant.name
    model = {"id": meant.artifact, "name": name, "files_at": str(folder)}
    return {"schema": SCHEMA, "model": model}
