"""The documents of `model export --lm-eval` and `model eval`: where held-out text lies.

Owns their keys. What isn't here is fetched from whoever has it. Reads no text: jupiterctl does, on
the same machine, as the same user.
"""

from typing import Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.runs.run_phases import HELD_OUT
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.model_catalog import CANDIDATE, RUN
from jupiterd.daemon.serving.named_models import named_model
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, CycleId


async def held_out_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return the folders of a candidate's verdict and of the text that was held out for it.

    Raises:
        NotFoundError: there is no such model, nobody has judged it, or nobody in reach has these.
        UsageError: several ids begin so.
    """
    model = named_model(state, wanted)
    run = state.cycles[model.run]
    said = run.verdicts.get(model.round) if model.kind == CANDIDATE else None
    if said is None:
        raise NotFoundError(
            f"no gate has judged {model.name}, so there is no text to export for lm-eval",
            "leave --lm-eval out, or name the candidate of a round that is over",
        )
    try:
        verdict = await artifact_cache.ensure(said.artifact)
        texts = [await artifact_cache.ensure(each) for each in _held_out(run, model.round)]
    except NotFoundError as error:
        raise NotFoundError(
            f"the text that {model.name} was judged on isn't all in reach",
            "start the nodes that have it",
        ) from error
    folders = [str(path) for path in texts]
    return {"schema": SCHEMA, "held_out": {"verdict": str(verdict), "texts": folders}}


async def run_held_out_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return the folder of the documents that a training run didn't learn from.

    Raises:
        NotFoundError: there is no such model, it is of no training run, nothing was held out, or
            nobody in reach has that.
        UsageError: several ids begin so.
    """
    model = named_model(state, wanted)
    run = state.cycles[model.run]
    made_in = run if run.training is None else state.cycles.get(CycleId(run.training.data), run)
    data = made_in.prepared
    if model.kind != RUN or data is None or HELD_OUT not in data.outputs:
        raise NotFoundError(
            f"nothing was held out of the text of {model.name}",
            "--tasks asks questions of yours; data with more documents has some held out",
        )
    try:
        folder = await artifact_cache.ensure(data.outputs[HELD_OUT])
    except NotFoundError as error:
        raise NotFoundError(
            f"the text that was held out for {model.name} isn't in reach",
            "start the nodes that have it",
        ) from error
    return {"schema": SCHEMA, "held_out": {"texts": [str(folder)]}}


def _held_out(run: CycleState, last_round: int) -> list[ArtifactId]:
    """Return what the rounds up to this one have held out, the first first."""
    collected = sorted(
        (fact.round, fact.item, fact.outputs[HELD_OUT])
        for fact in run.completed.values()
        if fact.phase == Phase.COLLECT and fact.round <= last_round and HELD_OUT in fact.outputs
    )
    return list(dict.fromkeys(artifact for _, _, artifact in collected))
