"""Which model a client means by a name, and which names there are.

Owns `promoted` and `base`, beside the names of the catalogue. Pure: it is handed the state. Doesn't
know which node has a model, or who asks.

| name | model |
|---|---|
| promoted | see `model_catalog.promoted_model` |
| base | the weights with which that cycle began, or the newest one where nothing is promoted |
| others | see `model_catalog` |
"""

from collections.abc import Sequence

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cycle.runs.recorded_settings import base_of
from jupiterd.daemon.catalog.cycle_lookup import newest_first
from jupiterd.daemon.catalog.model_catalog import (
    KnownModel,
    model_meant,
    models_of,
    promoted_model,
)
from jupiterd.errors import ModelNotServedError, NotFoundError
from jupiterd.ids import ArtifactId

BASE = "base"


def served_model(state: State, name: str) -> ServedModel:
    """Return the model of that name.

    Raises:
        ModelNotServedError: there is none, or not yet.
        UsageError: several ids begin so.
    """
    models = models_of(state)
    if name == PROMOTED:
        return ServedModel(name, _promoted(models).artifact)
    if name == BASE:
        return ServedModel(name, _base(state, models))
    try:
        return ServedModel(name, model_meant(models, name).artifact)
    except NotFoundError as error:
        raise ModelNotServedError(error.message) from error


def served_names(state: State) -> list[str]:
    """Return every name that has a model now, `promoted` and `base` first."""
    models = models_of(state)
    found = [PROMOTED] if promoted_model(models) is not None else []
    found += [BASE] if _base_id(state, models) else []
    return list(dict.fromkeys([*found, *(each.name for each in models)]))


def _promoted(models: Sequence[KnownModel]) -> KnownModel:
    if (found := promoted_model(models)) is not None:
        return found
    if models:
        raise ModelNotServedError(
            "no model is promoted yet",
            f"name one: {models[0].name}, or another one of jupiterctl model list; "
            "jupiterctl model promote MODEL promotes one",
        )
    raise ModelNotServedError(
        "there is no model yet", "train one first: jupiterctl cycle start --domain NAME"
    )


def _base(state: State, models: Sequence[KnownModel]) -> ArtifactId:
    if found := _base_id(state, models):
        return ArtifactId(found)
    raise ModelNotServedError(
        "no cycle has begun with weights that are a model",
        "jupiterctl cycle start --init FOLDER begins with some",
    )


def _base_id(state: State, models: Sequence[KnownModel]) -> str:
    promoted = promoted_model(models)
    for cycle, begun in newest_first(state):
        if promoted is None or begun.cycle == promoted.run:
            return base_of(begun.settings) if cycle.started is not None else ""
    return ""
