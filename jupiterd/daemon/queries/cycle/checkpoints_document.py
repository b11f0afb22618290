"""The document of a training's checkpoints: which there are, and who has them.

Owns its keys, and asking the nodes that answer. Copies are a status: a node that is away may hold
one, too. Which ones are retained isn't decided here (`cluster.artifacts`).
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from jupiterd.cluster.artifacts.replication_policy import COPIES, of_record
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.selected_run import SelectedRun, shown_run
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.document_schema import SCHEMA
from jupiterd.ids import ArtifactId, NodeId

MAX_SHOWN: Final = 16
ANSWER_TIMEOUT_S: Final = 2.0

Holders = Mapping[NodeId, Collection[ArtifactId]]


async def checkpoints_document(
    replica: Replica, artifact_cache: ArtifactCache, alive: AbstractSet[NodeId], run_id: str
) -> dict[str, Any]:
    """Return the newest checkpoints of a training's line, and of its islands, the newest first.

    `copies` names who holds one, of the nodes that answer; `copies_wanted` is 0 of one that may go.

    Raises:
        NotFoundError: there is no such training.
    """
    run = shown_run(replica.state.cycles, run_id)
    checkpoints = sorted(
        _checkpoints(run), key=lambda pair: (pair[1].round, pair[1].step), reverse=True
    )
    shown = checkpoints[:MAX_SHOWN]
    artifacts = list(dict.fromkeys(fact.artifact for _, fact in shown))
    holders = await _holders(artifact_cache, alive, artifacts)
    recorded = replica.derived(_of_record)
    names = {member: fact.name for member, fact in replica.state.members.items()}
    rows = [_row(island, fact, holders, names, recorded) for island, fact in shown]
    return {
        "schema": SCHEMA,
        "checkpoints": {
            "run": run.id,
            "rows": rows,
            "more": len(checkpoints) - len(shown),
            "silent": len(replica.state.members) - len(holders),
        },
    }


def _checkpoints(run: SelectedRun) -> Iterator[tuple[int | None, CheckpointCommitted]]:
    for fact in _of_branch(run.state):
        yield None, fact
    for state, started in run.islands:
        for fact in _of_branch(state):
            yield number_of(started), fact


def _of_branch(state: CycleState) -> Iterator[CheckpointCommitted]:
    return (fact for fact in state.canonical_branch() if isinstance(fact, CheckpointCommitted))


async def _holders(
    artifact_cache: ArtifactCache, alive: AbstractSet[NodeId], artifacts: Sequence[ArtifactId]
) -> Holders:
    """Return who answers, with what each has of these."""
    answers = await asyncio.gather(
        *(artifact_cache.held_by(each, artifacts, ANSWER_TIMEOUT_S) for each in sorted(alive))
    )
    return {each[0]: each[1] for each in answers if each is not None}


def _of_record(state: State) -> frozenset[ArtifactId]:
    return of_record(state.cycles)


def _row(
    island: int | None,
    fact: CheckpointCommitted,
    holders: Holders,
    names: Mapping[NodeId, str],
    recorded: Collection[ArtifactId],
) -> dict[str, Any]:
    having = [each for each, artifacts in holders.items() if fact.artifact in artifacts]
    return {
        "id": fact.artifact,
        "island": island,
        "round": fact.round,
        "step": fact.step,
        "tokens": fact.tokens,
        "loss": fact.loss,
        "is_final": fact.is_final,
        "on_trunk": fact.on_trunk,
        "copies": [names.get(each, each) for each in having],
        "copies_wanted": COPIES if fact.artifact in recorded else 0,
    }
