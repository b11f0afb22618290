"""The document of what a training's newest models write when they are tried out.

Owns its keys. What isn't here is read from whoever has it; where nobody answers there is nothing.
"""

from typing import Any, Final

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.model_catalog import CANDIDATE, models_of
from jupiterd.daemon.catalog.selected_run import shown_run
from jupiterd.daemon.queries.cluster.model_documents import completions_of
from jupiterd.document_schema import SCHEMA

MAX_LOOKED_AT: Final = 3
"""Number of newest models among which one with sample completions is looked for."""


async def completions_document(
    state: State, artifact_cache: ArtifactCache, run_id: str
) -> dict[str, Any]:
    """Return what the newest model wrote that was tried out.

    Raises:
        NotFoundError: there is no such training.
    """
    run = shown_run(state.cycles, run_id)
    models = [m for m in models_of(state) if (m.run, m.kind) == (run.id, CANDIDATE)]
    for model in models[:MAX_LOOKED_AT]:
        if samples := await completions_of(artifact_cache, run.state, model):
            document = {"round": model.round, "model": model.artifact, "samples": samples}
            return {"schema": SCHEMA, "completions": {"run": run.id, **document}}
    nothing = {"run": run.id, "round": None, "model": None, "samples": []}
    return {"schema": SCHEMA, "completions": nothing}
