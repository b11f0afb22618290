"""The document of `model eval`: the folder of a model's files on this machine.

Owns its keys. Names are those that a client may chat with, `promoted` and `base` among them.
"""

from typing import Any

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.model_catalog import models_of
from jupiterd.daemon.serving.named_models import served_model
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId


async def model_files_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return which model is meant and where its files lie, fetched where they aren't here.

    Raises:
        ModelNotServedError: there is no such model, or not yet.
        NotFoundError: nobody in reach has it.
        DiskFullError: there is no room for it here.
    """
    artifact = served_model(state, wanted).artifact or ArtifactId("")
    names = [each.name for each in models_of(state) if each.artifact == artifact]
    try:
        folder = await artifact_cache.ensure_model(artifact)
    except NotFoundError as error:
        raise NotFoundError(
            f"nobody in reach has the model {wanted}", "start the nodes that have it"
        ) from error
    model = {"id": artifact, "name": names[0] if names else wanted, "files_at": str(folder)}
    return {"schema": SCHEMA, "model": model}
