"""What a round's models answered to the cycle's prompts, as documents have it.

Owns the keys, beside those of a row (`cycle.generation.round_answers`). What isn't here is read
from whoever has it; that there is nothing to show is told and never an error.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.generation.round_answers import (
    ANSWERS,
    ANSWERS_FILE,
    MAX_ANSWERS_BYTES,
    ROLES,
    TROUBLE,
    read_answers,
)
from jupiterd.cycle.phases.view import item_id
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.errors import JupiterError

NOT_IN_REACH = "no node in reach has the answers"


async def answers_of_round(
    artifact_cache: ArtifactCache, cycle: CycleState, number: int, candidate: str
) -> dict[str, Any]:
    """Return the answers that stand beside a verdict; without rows where there are none.

    `trouble` is None or says why some, or all, are missing; an earlier version wrote none at all.
    """
    asked = cycle.completed.get((number, item_id(number, Phase.EVALUATE, 0, candidate)))
    trouble = None if asked is None else str(asked.summary.get(TROUBLE, "")) or None
    if asked is None or ANSWERS not in asked.outputs:
        return _document(trouble=trouble)
    try:
        return _document(await _read(artifact_cache, asked), trouble)
    except (JupiterError, UnicodeDecodeError):
        return _document(trouble=NOT_IN_REACH)


async def _read(artifact_cache: ArtifactCache, asked: WorkCompleted) -> Mapping[str, Any]:
    data = await artifact_cache.read(asked.outputs[ANSWERS], ANSWERS_FILE, MAX_ANSWERS_BYTES)
    return read_answers((data or b"").decode()).to_plain()


def _document(
    answers: Mapping[str, Any] | None = None, trouble: str | None = None
) -> dict[str, Any]:
    nothing = {"models": dict.fromkeys(ROLES), "rows": []}
    return {"trouble": trouble, **(answers or nothing)}
