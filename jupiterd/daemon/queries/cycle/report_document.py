"""The document of `cycle report`: all that a page about a cycle is made of.

Owns its keys. Small files are read wherever they lie; of samples only folders are named, fetched
first where they aren't here: jupiterctl reads them, on the same machine, as the same user.
"""

from operator import attrgetter
from pathlib import Path
from typing import Any

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import counting_islands
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.cycle_lookup import meant_cycle
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.daemon.catalog.model_catalog import CANDIDATE, KnownModel, models_of
from jupiterd.daemon.catalog.selected_run import shown_run
from jupiterd.daemon.catalog.training_log import training_log
from jupiterd.daemon.queries.cluster.model_documents import completions_of, data_of, verdict_of
from jupiterd.daemon.queries.cluster.status_document import shown
from jupiterd.daemon.queries.cycle.answers_of_round import answers_of_round
from jupiterd.daemon.queries.cycle.curve_document import curve_of
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.queries.cycle.own_questions_of_round import own_questions_of_round
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId

MAX_ROUNDS = 20
"""Number of newest rounds shown in full; older ones have rows alone."""

MAX_ANSWERED = 5
"""Number of newest rounds whose models' answers are shown: more of them fill a message."""

MAX_WORK = 4
"""So many pieces of a round's generating are looked through for samples."""


async def report_document(
    sources: DocumentSources, curves: CurveFiles, wanted: str
) -> dict[str, Any]:
    """Return what a page about a cycle is made of: of CYCLE, its id or domain, or of the newest.

    Raises:
        NotFoundError: there is no such cycle.
        UsageError: several ids begin so.
    """
    state, artifact_cache = sources.replica.state, sources.artifact_cache
    cycle, begun = meant_cycle(state, wanted)
    own = begun.cycle
    islands = counting_islands(state.cycles, own)
    models = [m for m in models_of(state) if (m.run, m.kind) == (own, CANDIDATE)]
    log = training_log(cycle, islands)
    return {
        "schema": SCHEMA,
        "report": {
            "cycle": shown(sources, cycle),
            "started_at": begun.started_at,
            "log": log,
            "curve": await _curve(sources, curves, own, [int(row["round"]) for row in log]),
            "machines": {name: each.name for name, each in state.members.items()},
            "rounds": [
                await _round(state, artifact_cache, cycle, model, is_new=place < MAX_ANSWERED)
                for place, model in enumerate(models[:MAX_ROUNDS])
            ][::-1],
            "samples": await _samples(artifact_cache, cycle),
        },
    }


async def _curve(
    sources: DocumentSources, curves: CurveFiles, cycle: str, trained: list[int]
) -> dict[str, Any] | None:
    """Return the loss of each step of the newest round that trained; None where none has."""
    if not trained:
        return None
    run = shown_run(sources.replica.state.cycles, cycle, max(trained))
    return await curve_of(sources, curves, run)


async def _round(
    state: State,
    artifact_cache: ArtifactCache,
    cycle: CycleState,
    model: KnownModel,
    *,
    is_new: bool,
) -> dict[str, Any]:
    answers = None
    if is_new:
        answers = await answers_of_round(artifact_cache, cycle, model.round, model.artifact)
    return model.to_plain() | {
        "answers": answers,
        "own_questions": own_questions_of_round(cycle, model.round, model.artifact),
        "verdict_document": await verdict_of(artifact_cache, cycle, model),
        "completions": await completions_of(artifact_cache, cycle, model),
        "data": await data_of(state, artifact_cache, cycle, model.round),
    }


async def _samples(artifact_cache: ArtifactCache, cycle: CycleState) -> dict[str, Any] | None:
    """Return where samples of the newest filtered round lie; None where nothing was filtered."""
    facts = work_that_counts(cycle.completed.values())
    united = [fact for fact in facts if "kept" in fact.outputs]
    if not united:
        return None
    last = max(united, key=attrgetter("round"))
    work = _work_of_round(facts, last.round)
    names = ("samples", "parents")
    return {
        "round": last.round,
        "kept": await _folders(artifact_cache, [last.outputs["kept"]]),
        "dropped": await _folders(artifact_cache, [last.outputs["dropped"]]),
        **{
            name: await _folders(
                artifact_cache, [f.outputs[name] for f in work if name in f.outputs]
            )
            for name in names
        },
    }


def _work_of_round(facts: list[WorkCompleted], number: int) -> list[WorkCompleted]:
    """Return the newest generating of a round or one before it: made text accumulates."""
    found = [f for f in facts if f.phase == Phase.GENERATE and f.round <= number and f.outputs]
    last = max((fact.round for fact in found), default=0)
    return sorted((f for f in found if f.round == last), key=attrgetter("item"))[:MAX_WORK]


async def _folders(artifact_cache: ArtifactCache, artifacts: list[ArtifactId]) -> list[str]:
    """Return the folders of those that are here or in reach; a page without them is one, too."""
    found: list[Path] = []
    for artifact in artifacts:
        try:
            found.append(await artifact_cache.ensure(artifact))
        except JupiterError:
            continue
    return [str(path) for path in found]
