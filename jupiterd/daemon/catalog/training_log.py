"""How each round of a cycle, or a run, was trained: by whom, on what, how long, to what loss.

Owns the keys of that log. Pure: it is handed what the ledger says. Steps between checkpoints are in
the curves of the node that wrote them, not here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cluster.training.attempt_numbers import attempt_number
from jupiterd.daemon.catalog.islands_document import Islands
from jupiterd.daemon.catalog.phase_rows import phase_rows


def training_log(run: CycleState, islands: Islands = ()) -> list[dict[str, Any]]:
    """Return the rounds that have trained anything, in their order."""
    numbers = range(1, max(run.rounds_committed + 1, 1) + 1)
    phases = phase_rows(run, None, islands)
    rows = (_round(run, number, islands, phases) for number in numbers)
    return [row for row in rows if row["points"] or row["epochs"]]


def _round(
    run: CycleState, number: int, islands: Islands, phases: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    checkpoints = [
        fact
        for fact in run.canonical_branch()
        if isinstance(fact, CheckpointCommitted) and fact.round == number
    ]
    own = [row for row in phases if row["round"] == number]
    packed = run.manifests.get(number)
    return {
        "round": number,
        "epochs": list(_attempts(run, number, islands)),
        "points": [{"step": f.step, "tokens": f.tokens, "loss": f.loss} for f in checkpoints],
        "steps": checkpoints[-1].step if checkpoints else 0,
        "tokens": checkpoints[-1].tokens if checkpoints else 0,
        "packed_tokens": None if packed is None else packed.tokens,
        "phases": {row["phase"]: row["elapsed_s"] for row in own if row["elapsed_s"] is not None},
    }


def _attempts(run: CycleState, number: int, islands: Islands) -> Iterator[dict[str, Any]]:
    for opened in run.attempts_opened.values():
        if opened.round == number:
            yield _attempt(run, opened, "")
    for state, started in islands:
        if started.parent_round == number:
            for opened in state.attempts_opened.values():
                yield _attempt(state, opened, f"island {number_of(started)}")


def _attempt(run: CycleState, opened: AttemptOpened, island: str) -> dict[str, Any]:
    closed = run.attempts_closed.get(opened.attempt)
    return {
        "epoch": opened.attempt,
        "attempt": opened.attempt,
        "attempt_in_round": attempt_number(run.attempts_opened.values(), opened),
        "island": island,
        "engine": opened.engine,
        "reason": opened.engine_reason,
        "nodes": list(opened.gang),
        "from_step": opened.from_step,
        "elapsed_s": None if closed is None else closed.elapsed_s,
        "ended": "" if closed is None else closed.reason,
    }
