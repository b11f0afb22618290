"""What is recorded of islands: that they begin, and the last weights of all.

Owns these facts. Doesn't know when they are recorded (`island_coordinator`).
"""

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken, TrainingStarted
from jupiterd.cluster.ledger.island_runs import island_id
from jupiterd.cluster.planning.layouts import Island
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.daemon.runtime.clock import wall_iso


def island_started(of: TrainingSpec, number: int, island: Island, weights: str) -> TrainingStarted:
    """Return the run of an island; groups that begin the same round apart have the same ones."""
    parent = of.started
    return TrainingStarted(
        cycle=island_id(parent.cycle, of.round, of.start, number),
        name=f"{parent.name}/{number}",
        data=parent.data,
        model=parent.model,
        model_yaml=parent.model_yaml,
        engine=island.engine,
        nodes=island.nodes,
        settings={**parent.settings, "start_from": weights, "max_ranks": 0, "island_nodes": ""},
        started_at=wall_iso(),
        parent=parent.cycle,
        parent_round=of.round,
    )


def last_weights(
    of: TrainingSpec, stored: CheckpointCommitted, taken: OuterStepTaken
) -> CheckpointCommitted:
    """Return what is recorded where an island has written the last weights of all.

    These are the best that were merged, where the losses on held-out text say so.
    """
    return CheckpointCommitted(
        cycle=of.started.cycle,
        round=of.round,
        parent=of.start,
        artifact=stored.artifact,
        attempt=stored.attempt,
        step=stored.step,
        tokens=taken.total_tokens,
        cursor=taken.cursor,
        loss=stored.loss,
        is_final=True,
        began_with=of.start,
        horizon=stored.horizon,
    )
