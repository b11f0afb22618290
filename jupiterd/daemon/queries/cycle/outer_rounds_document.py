"""The document of a training's exchanges between islands: who had a part, how much, how long.

Owns its keys. Out of the ledger alone; the newest outer steps of the present round come first.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.catalog.selected_run import SelectedRun, shown_run
from jupiterd.document_schema import SCHEMA

MAX_STEPS: Final = 20


def outer_rounds_document(state: State, run_id: str) -> dict[str, Any]:
    """Return the newest outer steps of a training's present round.

    Raises:
        NotFoundError: there is no such training.
    """
    run = shown_run(state.cycles, run_id)
    names = {member: fact.name for member, fact in state.members.items()}
    return {
        "schema": SCHEMA,
        "outer_rounds": {
            "run": run.id,
            "round": run.round,
            "islands": [
                {
                    "island": number_of(started),
                    "engine": started.engine,
                    "nodes": [names.get(each, each) for each in started.nodes],
                }
                for _, started in run.islands
            ],
            "steps": outer_step_rows(run),
        },
    }


def outer_step_rows(run: SelectedRun) -> list[dict[str, Any]]:
    """Return the newest outer steps that merged anything, the newest first."""
    numbers = {started.cycle: number_of(started) for _, started in run.islands}
    line = [*run.state.outer_branch(run.round).values()]
    closed = [(line[n - step.lag], step) for n, step in enumerate(line) if n >= step.lag]
    merged = [(ended, step) for ended, step in closed if step.islands or step.left_out]
    return [_row(ended, step, numbers) for ended, step in reversed(merged[-MAX_STEPS:])]


def _row(ended: OuterStepTaken, step: OuterStepTaken, numbers: Mapping[Any, int]) -> dict[str, Any]:
    """Return one exchange: of what it merged, and of the round that it ended."""
    slowest = max(step.trained_s.values(), default=0.0)
    parts = [
        {
            "island": numbers.get(island, 0),
            "tokens": tokens,
            "trained_s": step.trained_s.get(island) or None,
            "bytes": step.pseudo_gradient_bytes.get(island) or None,
            "is_slowest": len(step.islands) > 1 and step.trained_s.get(island) == slowest > 0,
        }
        for island, tokens in zip(step.islands, step.tokens, strict=True)
    ]
    return {
        "number": step.number,
        "steps": ended.steps,
        "contributed": parts,
        "left_out": [
            {"island": numbers.get(island, 0), "reason": reason}
            for island, reason in step.left_out.items()
        ],
        "bytes": sum(step.pseudo_gradient_bytes.values()) or None,
        "elapsed_s": step.elapsed_s or None,
    }
