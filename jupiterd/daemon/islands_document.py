"""The islands of a run, as its document shows them.

Owns their keys. Pure: it is handed what the ledger and the leader say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import TrainingStarted
from jupiterd.cluster.island_runs import is_trained, number_of

Islands = Sequence[tuple[CycleState, TrainingStarted]]

DONE, FAILED, STOPPED, WAITING = "done", "failed", "stopped", "waiting"
"""What an island does, where the leader tells nothing."""


def island_rows(
    run: CycleState, islands: Islands, live: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return each island of a run; none where one gang trains it."""
    told: list[Mapping[str, Any]] = ((live or {}).get("outer") or {}).get("islands", [])
    padded = [*told, *({} for _ in islands[len(told) :])]
    return [_row(run, *pair, row) for pair, row in zip(islands, padded, strict=False)]


def outer_steps(run: CycleState) -> int:
    """Return how often islands have exchanged what they learned."""
    return max((step.number for step in run.outer_line().values()), default=0)


def _row(
    run: CycleState, island: CycleState, started: TrainingStarted, told: Mapping[str, Any]
) -> dict[str, Any]:
    last = island.last_checkpoint(1)
    return {
        "island": number_of(started),
        "engine": started.engine,
        "nodes": list(started.nodes),
        "step": told.get("step", 0 if last is None else last.step),
        "tokens_per_s": told.get("tokens_per_s"),
        "outer_step": told.get("outer_step", _newest(run, started)),
        "state": told.get("state", _state(run, island)),
    }


def _newest(run: CycleState, started: TrainingStarted) -> int:
    """Return the last outer step that merged what an island had learned; 0: none."""
    merged = (step for step in run.outer_line().values() if started.cycle in step.islands)
    return max((step.number for step in merged), default=0)


def _state(run: CycleState, island: CycleState) -> str:
    if island.failed is not None:
        return FAILED
    if is_trained(island) or run.rounds_committed:
        return DONE
    return STOPPED if island.finished else WAITING
