"""Which model a client means by a name, and which names there are.

Owns `promoted` and `base`, beside the names of the catalogue. Pure: it is handed the state. Doesn't
know which node has a model, or who asks.

| name | model |
|---|---|
| promoted | see `model_catalog.promoted_model` |
| base | the weights with which that cycle began; where nothing is promoted, those with which the \
newest cycle or training run began that was given any |
| NAME/base | those with which the cycle or training run of the model NAME began |
| others | see `model_catalog` |
"""

from collections.abc import Sequence
from operator import attrgetter

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cycle.runs.recorded_settings import base_of
from jupiterd.daemon.catalog.model_catalog import (
    GENERATOR,
    RUN,
    KnownModel,
    model_meant,
    models_of,
    promoted_model,
)
from jupiterd.errors import ModelNotServedError, NotFoundError
from jupiterd.ids import ArtifactId

BASE = "base"

_OF = f"/{BASE}"
"""Ends a name that means the base of another one's."""


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
    if name.endswith(_OF):
        return ServedModel(name, _base_of(state, _called(models, name.removesuffix(_OF))))
    return ServedModel(name, _called(models, name).artifact)


def served_names(state: State) -> list[str]:
    """Return every name that has a model now, `promoted` and `base` first."""
    models = models_of(state)
    found = [PROMOTED] if promoted_model(models) is not None else []
    found += [BASE] if _base_id(state, models) else []
    return list(dict.fromkeys([*found, *(each.name for each in models)]))


def _called(models: Sequence[KnownModel], name: str) -> KnownModel:
    if name == PROMOTED:
        return _promoted(models)
    try:
        return model_meant(models, name)
    except NotFoundError as error:
        raise ModelNotServedError(error.message) from error


def _promoted(models: Sequence[KnownModel]) -> KnownModel:
    if (found := promoted_model(models)) is not None:
        return found
    if models:
        raise ModelNotServedError("no model is promoted yet", _what_works(models))
    raise ModelNotServedError(
        "there is no model yet",
        "train one first: jupiterctl cycle start --domain NAME; or talk to a model's folder: "
        "jupiterctl model chat FOLDER",
    )


def _what_works(models: Sequence[KnownModel]) -> str:
    """Return how to use a model without a promotion; a training run's can't be promoted."""
    newest = next((each for each in models if each.kind != GENERATOR), models[0])
    named = f"name one: jupiterctl model chat {newest.name}"
    if all(each.kind == RUN for each in models):
        return f"{named}; a training run's model is never promoted, that of a cycle may be"
    return f"{named}; jupiterctl model list shows all, jupiterctl model promote MODEL promotes one"


def _base(state: State, models: Sequence[KnownModel]) -> ArtifactId:
    if found := _base_id(state, models):
        return ArtifactId(found)
    raise ModelNotServedError(
        "nothing that was trained here has begun with weights that were brought",
        "jupiterctl train start --model FOLDER begins with some, and cycle start --init FOLDER",
    )


def _base_of(state: State, model: KnownModel) -> ArtifactId:
    run = state.cycles.get(model.run)
    if found := "" if run is None else _begun_with(run):
        return ArtifactId(found)
    raise ModelNotServedError(
        f"{model.name} has no base: its training began with random weights",
        "name another model to stand beside it: jupiterctl model list shows all",
    )


def _base_id(state: State, models: Sequence[KnownModel]) -> str:
    promoted = promoted_model(models)
    if promoted is not None:
        run = state.cycles.get(promoted.run)
        return "" if run is None else _begun_with(run)
    newest_first = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    return next(filter(None, (_begun_with(run) for run in newest_first if is_whole(run))), "")


def _begun_with(run: CycleState) -> str:
    """Return the model that a cycle or training run was given; empty where there was none."""
    requested = run.started or run.training
    return "" if requested is None else base_of(requested.settings)
