"""The islands of a run, or of a cycle's round, as its document shows them.

Owns their keys. Pure: it is handed what the ledger and the leader say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.cluster.facts.facts import TrainingStarted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_trained, is_trained_in, number_of

Islands = Sequence[tuple[CycleState, TrainingStarted]]

DONE, FAILED, STOPPED, WAITING = "done", "failed", "stopped", "waiting"
"""State of an island where the leader reports none."""


def island_rows(
    run: CycleState, islands: Islands, live: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return each island of a round; none where one gang trains it."""
    reported: list[Mapping[str, Any]] = ((live or {}).get("outer") or {}).get("islands", [])
    padded = [*reported, *({} for _ in islands[len(reported) :])]
    return [_row(run, *pair, row) for pair, row in zip(islands, padded, strict=False)]


def outer_steps(run: CycleState, round_number: int = 1) -> int:
    """Return how often islands have exchanged in a round what they learned."""
    return sum(1 for step in run.outer_branch(round_number).values() if step.islands)


def inner_steps(run: CycleState, round_number: int = 1) -> int | None:
    """Return how many steps islands train before they exchange; None where no islands train.

    The last exchange comes earlier, where the steps end.
    """
    counts = [step.steps for step in run.outer_branch(round_number).values() if step.steps]
    return max(counts[-2:], default=None)


def _row(
    run: CycleState, island: CycleState, started: TrainingStarted, reported: Mapping[str, Any]
) -> dict[str, Any]:
    last = island.last_checkpoint(1)
    return {
        "island": number_of(started),
        "id": started.cycle,
        "engine": started.engine,
        "nodes": list(started.nodes),
        "step": reported.get("step", 0 if last is None else last.step),
        "tokens_per_s": reported.get("tokens_per_s"),
        "outer_step": reported.get("outer_step", _newest(run, started)),
        "state": reported.get("state", _state(run, island, started)),
    }


def _newest(run: CycleState, started: TrainingStarted) -> int:
    """Return the last outer step that merged what an island had learned; 0: none."""
    line = run.outer_branch(started.parent_round)
    merged = (step for step in line.values() if started.cycle in step.islands)
    return max((step.number for step in merged), default=0)


def _state(run: CycleState, island: CycleState, started: TrainingStarted) -> str:
    if island.failed is not None:
        return FAILED
    if is_trained(island) or is_trained_in(run, started.parent_round):
        return DONE
    return STOPPED if island.has_nothing_to_do else WAITING
