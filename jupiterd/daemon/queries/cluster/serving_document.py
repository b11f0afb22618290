"""The models that a member serves, as `status` and `node show` have them.

Owns the keys; changes nothing.

    model                  what clients call it
    is                     the name of the catalogue's model that this means; None: the same, or
                           a folder of that machine
    ready                  it answers at once; otherwise it is being loaded
    answers, queued        that are being written, and that wait
    tokens_per_s           of all its answers together; None: nothing was measured
"""

from typing import Any

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.serving_rows import ModelLoad
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.ids import ArtifactId, NodeId, short


def serving_document(sources: DocumentSources, member: NodeId) -> list[dict[str, Any]]:
    """Return a row for each model that a member serves; none where it serves nothing."""
    loads = sources.serving.of(member).models
    if not loads:
        return []
    names = sources.replica.derived(_names)
    return [_row(load, names) for load in loads]


def _row(load: ModelLoad, names: dict[ArtifactId, str]) -> dict[str, Any]:
    known = "" if load.artifact is None else names.get(load.artifact, short(load.artifact))
    return {
        "model": load.name,
        "is": known if known and known != load.name else None,
        "ready": load.is_ready,
        "answers": load.running,
        "queued": load.queued,
        "tokens_per_s": load.tokens_per_s,
    }


def _names(state: State) -> dict[ArtifactId, str]:
    from jupiterd.daemon.catalog.model_catalog import models_of  # with many modules more

    return {model.artifact: model.name for model in reversed(models_of(state))}
