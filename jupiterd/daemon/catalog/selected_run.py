"""Which training a document about one is of: a cycle's, or a run's without the cycle.

Owns finding it, and the runs of its gangs. Doesn't know the documents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cluster.facts.facts import TrainingStarted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import counting_islands
from jupiterd.errors import NotFoundError
from jupiterd.ids import CycleId, short


@dataclass(frozen=True)
class SelectedRun:
    """One training, in the round that it is in, or in one before."""

    id: CycleId
    state: CycleState
    round: int
    islands: Sequence[tuple[CycleState, TrainingStarted]]
    """Those of this round."""


def shown_run(
    cycles: Mapping[CycleId, CycleState], run_id: str, round_number: int | None = None
) -> SelectedRun:
    """Return the training of that id, in the round that is named, or the present one.

    Raises:
        NotFoundError: there is none.
    """
    run = cycles.get(CycleId(run_id))
    if run is None or run.begun is None:
        raise NotFoundError(f"there is no training {short(run_id)}", "jupiterctl cycle list")
    current = round_number or min(run.rounds_committed + 1, run.rounds_wanted)
    pairs = counting_islands(cycles, run.begun.cycle)
    islands = [pair for pair in pairs if pair[1].parent_round == current]
    return SelectedRun(run.begun.cycle, run, current, islands)
