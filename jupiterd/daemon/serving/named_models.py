"""Which model people and clients mean by a name, and which names there are.

Owns `promoted` and `base`, beside the names of the catalogue: commands, documents and endpoints all
ask here. Pure: it is handed the state. Doesn't know which node has a model, or who asks.

| name | model |
|---|---|
| promoted | see `model_catalog.promoted_model`; where every promoted student was rolled back, the \
weights with which their cycle began |
| base | the weights with which that cycle began; where nothing is promoted, those with which the \
newest cycle or training run began that was given any |
| NAME/base | those with which the cycle or training run of the model NAME began |
| others | see `model_catalog`; where none is called so, weights that were brought: by their id, \
or by what they were called where they were brought, if only one is called so |
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.cycle.runs.recorded_settings import base_of
from jupiterd.daemon.catalog.generator_state import is_back_at_its_base
from jupiterd.daemon.catalog.model_catalog import (
    GENERATOR,
    RUN,
    KnownModel,
    brought_model,
    model_meant,
    models_of,
    promoted_model,
)
from jupiterd.errors import ModelNotServedError, NotFoundError, UsageError
from jupiterd.ids import ArtifactId, short

BASE = "base"

_OF = f"/{BASE}"
"""Ends a name that means the base of another one's."""


def served_model(state: State, name: str) -> ServedModel:
    """Return the model of that name, as engines know it.

    Raises:
        ModelNotServedError: there is none, or not yet.
        UsageError: several ids begin so.
    """
    try:
        return ServedModel(name, named_model(state, name).artifact)
    except NotFoundError as error:
        raise ModelNotServedError(error.message, error.hint) from error


def named_model(state: State, name: str) -> KnownModel:
    """Return the model of that name.

    Raises:
        NotFoundError: there is none, or not yet.
        UsageError: several ids begin so.
    """
    models = models_of(state)
    if name == BASE:
        return _base(state, models)
    if name.endswith(_OF):
        return _base_of(state, models, _called(state, models, name.removesuffix(_OF)))
    return _called(state, models, name)


def promoted_now(state: State, models: Sequence[KnownModel]) -> KnownModel | None:
    """Return the model that `promoted` means; None: none was promoted, or none is any more."""
    return promoted_model(models) or _left_by_students(state, models)


def _left_by_students(state: State, models: Sequence[KnownModel]) -> KnownModel | None:
    """Return what the newest cycle began with whose promoted students were all rolled back."""
    newest_first = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    found = (run for run in newest_first if _begun_with(run) and is_back_at_its_base(run))
    return next((_brought(models, run) for run in found), None)


def served_names(state: State) -> list[str]:
    """Return every name that has a model now, `promoted` and `base` first."""
    models = models_of(state)
    found = [PROMOTED] if promoted_now(state, models) is not None else []
    run = _run_of_base(state, models)
    found += [BASE] if run is not None and _begun_with(run) else []
    return list(dict.fromkeys([*found, *(each.name for each in models)]))


def _called(state: State, models: Sequence[KnownModel], name: str) -> KnownModel:
    if name == PROMOTED:
        return _promoted(state, models)
    try:
        return model_meant(models, name)
    except NotFoundError:
        if (brought := _brought_as(state, name)) is None:
            raise
        return brought


def _brought_as(state: State, name: str) -> KnownModel | None:
    """Return the weights that were brought and are meant; raise UsageError where several are."""
    runs = filter(is_whole, state.cycles.values())
    known = {str(start): brought_model(run, ArtifactId(str(start)))
             for run in runs if (start := _weights_of(run))}  # fmt: skip
    named = [Named(each, each.label, [each.artifact]) for each in known.values()]
    found = meant(named, name)
    if len(found) > 1:
        could = ", ".join(sorted(short(each.artifact) for each in found))
        raise UsageError(f"{name} could be any of {could}", "give the beginning of the id")
    return found[0] if found else None


def _weights_of(run: CycleState) -> str:
    """Return the weights that a cycle or training run was given; of an adapter, its base."""
    requested = run.started or run.training
    return "" if requested is None else str(requested.settings.get("start_from") or "")


def _promoted(state: State, models: Sequence[KnownModel]) -> KnownModel:
    if (found := promoted_now(state, models)) is not None:
        return found
    if models:
        raise NotFoundError("no model is promoted yet", _what_works(models))
    raise NotFoundError(
        "there is no model yet",
        "train one first: jupiterctl cycle start --domain NAME; or talk to a model's folder: "
        "jupiterctl model chat FOLDER",
    )


def _what_works(models: Sequence[KnownModel]) -> str:
    """Return how to use a model without a promotion; a training run's can't be promoted."""
    newest = next((each for each in models if each.kind != GENERATOR), models[0])
    named = f"name one, such as {newest.name}; jupiterctl model list shows all"
    if all(each.kind == RUN for each in models):
        return f"{named}; a training run's model is never promoted, that of a cycle may be"
    return f"{named}, jupiterctl model promote MODEL promotes one"


def _base(state: State, models: Sequence[KnownModel]) -> KnownModel:
    run = _run_of_base(state, models)
    if run is not None and _begun_with(run):
        return _brought(models, run)
    if (promoted := promoted_model(models)) is not None:
        raise NotFoundError(*_no_base(state, models, promoted))
    raise NotFoundError(
        "nothing that was trained here has begun with weights that were brought",
        "jupiterctl train start --model FOLDER begins with some, and cycle start --init FOLDER",
    )


def _base_of(state: State, models: Sequence[KnownModel], model: KnownModel) -> KnownModel:
    run = state.cycles.get(model.run)
    if run is not None and _begun_with(run):
        return _brought(models, run)
    raise NotFoundError(*_no_base(state, models, model))


def _no_base(state: State, models: Sequence[KnownModel], model: KnownModel) -> tuple[str, str]:
    """Return why a model has no base, and what can stand beside it instead."""
    others = [f"{each.name}/{BASE}" for each in _with_base(state, models)]
    others += [each.name for each in models if each.artifact != model.artifact]
    hint = f"name another model, such as {others[0]}: " if others else ""
    promoted = ", which is promoted," if model.is_promoted else ""
    return (
        f"{model.name}{promoted} has no base: its training began with random weights",
        f"{hint}jupiterctl model list shows all",
    )


def _with_base(state: State, models: Sequence[KnownModel]) -> Iterator[KnownModel]:
    """Yield the models whose training began with weights that were brought."""
    for each in models:
        run = state.cycles.get(each.run)
        if run is not None and _begun_with(run):
            yield each


def _run_of_base(state: State, models: Sequence[KnownModel]) -> CycleState | None:
    """Return the cycle or run whose beginning `base` means; it may have begun at random."""
    if (promoted := promoted_now(state, models)) is not None:
        return state.cycles.get(promoted.run)
    newest_first = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    return next((run for run in newest_first if is_whole(run) and _begun_with(run)), None)


def _brought(models: Sequence[KnownModel], run: CycleState) -> KnownModel:
    """Return what a run began with, which may be a model that was trained here."""
    artifact = _begun_with(run)
    known = (each for each in models if each.artifact == artifact)
    return next(known, None) or brought_model(run, artifact)


def _begun_with(run: CycleState) -> ArtifactId:
    """Return the model that a cycle or training run was given; empty where there was none."""
    requested = run.started or run.training
    return ArtifactId("" if requested is None else base_of(requested.settings))
