"""The document of `model export --lm-eval`: where the text lies that a candidate was judged on.

Owns its keys. What isn't here is fetched from whoever has it. Reads no text: jupiterctl does, on
the same machine, as the same user.
"""

from typing import Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.runs.run_phases import HELD_OUT
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.model_catalog import CANDIDATE
from jupiterd.daemon.serving.named_models import named_model
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId


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


def _held_out(run: CycleState, last_round: int) -> list[ArtifactId]:
    """Return what the rounds up to this one have held out, the first first."""
    collected = sorted(
        (fact.round, fact.item, fact.outputs[HELD_OUT])
        for fact in run.completed.values()
        if fact.phase == Phase.COLLECT and fact.round <= last_round and HELD_OUT in fact.outputs
    )
    return list(dict.fromkeys(artifact for _, _, artifact in collected))
