"""The document of `model eval`: the file of a domain's own questions, on this machine.

Owns its keys, and whose questions are meant. What isn't here is fetched from whoever has it. Reads
no question: jupiterctl does, on the same machine, as the same user.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.questions.question_file import QUESTIONS_FILE
from jupiterd.cycle.runs.recorded_settings import questions_of
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.cycle_lookup import Begun, newest_first
from jupiterd.daemon.catalog.model_catalog import models_of
from jupiterd.daemon.serving.named_models import named_model
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId
from jupiterd.store.manifest import is_artifact_id


async def questions_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return the questions of a model's cycle; None: that cycle has none.

    wanted: a model's name or id; empty: the newest cycle that has questions

    Raises:
        NotFoundError: there is no such model, or nobody in reach has its questions.
        UsageError: several ids begin so.
    """
    found = _cycle_of(state, wanted)
    artifact = "" if found is None else questions_of(found[1].settings)
    if found is None or not artifact:
        return {"schema": SCHEMA, "questions": None}
    try:
        folder = await artifact_cache.ensure(ArtifactId(artifact))
    except NotFoundError as error:
        raise NotFoundError(
            f"nobody in reach has the questions of {found[1].domain}",
            "start the nodes that have them",
        ) from error
    questions = {
        "domain": found[1].domain,
        "cycle": found[1].cycle,
        "id": artifact,
        "file": str(folder / QUESTIONS_FILE),
    }
    return {"schema": SCHEMA, "questions": questions}


def _cycle_of(state: State, wanted: str) -> Begun | None:
    """Return the cycle that is meant; None: none has questions, or the model is of none."""
    cycles = newest_first(state)
    if not wanted:
        return next((each for each in cycles if questions_of(each[1].settings)), None)
    if begun := [each for each in cycles if wanted in _begun_with(each[1].settings)]:
        return next((each for each in begun if questions_of(each[1].settings)), begun[0])
    models = models_of(state)
    if is_artifact_id(wanted) and all(each.artifact != wanted for each in models):
        return None  # such as what a training run began with
    model = named_model(state, wanted)
    return next((each for each in cycles if each[1].cycle == model.run), None)


def _begun_with(settings: Mapping[str, Any]) -> tuple[object, object]:
    """Return the weights that a cycle began with, and the adapter, where it was given one."""
    return settings.get("start_from"), settings.get("adapter_from")
