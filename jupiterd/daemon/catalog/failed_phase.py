"""In which phase a cycle or run failed, among the rows of its round.

Pure. Owns deriving that from recorded facts. Doesn't know why it failed, or how rows are made
and shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.collect import split_id

Row = Mapping[str, Any]

FAILED = "failed"
"""State of a row."""


def with_failed_phase(cycle: CycleState, number: int, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows of a round, that one as failed in which a cycle that has failed did.

    It is the first that isn't known to be whole. Of a phase of several items that is known once it
    has what unites them; where nothing does, results are taken for a part of them.
    """
    if cycle.failed is None or number != cycle.rounds_committed + 1:
        return [dict(row) for row in rows]
    last = max((place for place, row in enumerate(rows) if row["state"] == "done"), default=-1)
    if last >= 0 and not _is_whole(cycle, number, Phase(rows[last]["phase"])):
        return _failed_at(last, rows)
    waiting = (place for place, row in enumerate(rows) if place > last and _is_open(row))
    following = next(waiting, None)
    if following is None:
        return [dict(row) for row in rows]
    return _failed_at(following, rows, _steps(cycle, number, rows[following]))


def _failed_at(place: int, rows: Sequence[Row], more: Row | None = None) -> list[dict[str, Any]]:
    changed = {"state": FAILED, **(more or {})}
    return [{**row, **(changed if each == place else {})} for each, row in enumerate(rows)]


def _is_open(row: Row) -> bool:
    return bool(row["state"] == "waiting")


def _is_whole(cycle: CycleState, number: int, phase: Phase) -> bool:
    done = cycle.completed_in(number, phase)
    match phase:
        case Phase.COLLECT:  # one that began before text was parted here has parted it as it read
            return split_id(number) in done or any("train" in f.outputs for f in done.values())
        case Phase.FILTER:
            return any("kept" in fact.outputs for fact in done.values())
        case Phase.PACK | Phase.TRAIN:
            return True
        case _:
            return False


def _steps(cycle: CycleState, number: int, row: Row) -> Row:
    """Return how far a training was that has failed."""
    last = cycle.last_checkpoint(number) if row["phase"] == Phase.TRAIN else None
    return {} if last is None else {"done": last.step, "unit": "steps"}
