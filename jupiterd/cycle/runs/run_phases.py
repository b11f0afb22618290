"""What a run needs next: a data set, training, or both, without the rounds of a cycle.

Owns the order of its phases and what goes into every item. Doesn't know nodes, processes or the
ledger: it is shown what is done and says what is to be done, whoever asks and whenever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.phases.steps import RunItems, TrainRound
from jupiterd.cycle.phases.view import item_id
from jupiterd.cycle.runs.recorded_settings import LOSS_ON
from jupiterd.errors import Bug
from jupiterd.ids import ArtifactId
from jupiterd.protocol.frames import Scalar

PREPARE_ITEM = item_id(1, Phase.PACK, 0)
DRAW_ITEM = item_id(1, Phase.TRAIN, 0)
HELD_OUT = "holdout"
"""The output of preparing that holds documents for validation, where there are any."""


@dataclass(frozen=True)
class RunView:
    """What is known of a run."""

    source: Mapping[str, Scalar] | None
    """What its data set is made of; None where it makes none."""
    tokenizer: str
    """Artifact id of the tokenizer given for that, or empty."""
    is_training: bool
    data: WorkResult | None
    """The data set, as soon as it is there."""
    has_manifest: bool
    final_checkpoint: ArtifactId | None
    """The artifact, once training is done."""
    completed: Mapping[str, WorkResult]
    unscored: ArtifactId | None = None
    """A model that couldn't be validated: it is no worse for that."""


@dataclass(frozen=True)
class FreezeManifest:
    """Record what is trained on."""

    data: WorkResult


@dataclass(frozen=True)
class CloseRun:
    """Record the end; there is no verdict."""

    model: ArtifactId


RunStep = RunItems | FreezeManifest | TrainRound | CloseRun


def evaluation_id(model: str) -> str:
    """Return the id of the item that scores a model."""
    return item_id(1, Phase.EVALUATE, 0, model)


def next_run_step(view: RunView) -> tuple[RunStep, str]:
    """Return what the run needs next, with the reason."""
    if view.data is None:
        return RunItems(Phase.PACK, (_preparing(view),), 1), "the data set isn't there yet"
    if not view.is_training:
        raise Bug("a run that only prepares data is done with that")
    if not view.has_manifest:
        return FreezeManifest(view.data), "the data set is there"
    if view.final_checkpoint is None:
        return trained_on(view.data), "the data set is frozen"
    is_judged = (
        evaluation_id(view.final_checkpoint) in view.completed
        or view.final_checkpoint == view.unscored
    )
    if HELD_OUT in view.data.outputs and not is_judged:
        item = _evaluation(view.final_checkpoint, view.data)
        return RunItems(Phase.EVALUATE, (item,), 1), "the model is trained"
    return CloseRun(view.final_checkpoint), "all is done"


def trained_on(data: WorkResult) -> TrainRound:
    """Return what training takes of a data set."""
    outputs = data.outputs
    held_out = (outputs[HELD_OUT],) if HELD_OUT in outputs else ()
    return TrainRound(outputs["tokenizer"], outputs["shards"], held_out)


def drawing(shape: Mapping[str, Any], plan: Mapping[str, Any], tokenizer: ArtifactId) -> WorkItem:
    """Return the item that draws the first weights, which all islands of a run begin with."""
    params = {"shape": shape, "plan": plan}
    return WorkItem(DRAW_ITEM, Phase.TRAIN, "draw_weights", params, {"tokenizer": tokenizer})


def _preparing(view: RunView) -> WorkItem:
    if view.source is None:
        raise Bug("a run has no data set, and nothing to make one of")
    inputs = {"tokenizer": ArtifactId(view.tokenizer)} if view.tokenizer else {}
    return WorkItem(PREPARE_ITEM, Phase.PACK, "prepare", dict(view.source), inputs)


def _evaluation(model: ArtifactId, data: WorkResult) -> WorkItem:
    """Return the item that scores a model, as it was trained: by what the loss counted."""
    inputs = {"model": model, HELD_OUT: data.outputs[HELD_OUT]}
    said = data.summary.get(LOSS_ON)
    params = {LOSS_ON: said} if said else {}
    return WorkItem(evaluation_id(model), Phase.EVALUATE, "evaluate_held_out", params, inputs)
