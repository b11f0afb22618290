"""How fast a model has written in the cycles before, as the ledger says.

Owns finding that. Doesn't know what is to be written, or who asks.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.generator import Generator, generator_from
from jupiterd.daemon.leader.bounded_concurrency import engine_places
from jupiterd.daemon.leader.placement import Placement


def written_before(state: State, placement: Placement, named: str) -> dict[str, Any]:
    """Return a model's tokens per second, of all machines that would write, and of each answer.

    Nothing where it hasn't written yet in any cycle that is known here.

    named: as people name the model; empty: nobody
    """
    cycles = state.cycles.values() if named else ()
    for cycle in sorted(cycles, key=lambda cycle: cycle.start_order, reverse=True):
        writer = None if cycle.started is None else generator_from(cycle.started.generator)
        if writer is None or not _is_called(writer, named):
            continue
        did = _did(cycle, writer)
        if did["tokens"] and did["writing_s"]:
            places = 1 if writer.url else engine_places(placement)
            answers = max(1.0, did["prompts"] - did["kept"])
            rate = places * did["tokens"] / did["writing_s"]
            return {"tokens_per_s": round(rate, 2), "tokens_each": round(did["tokens"] / answers)}
    return {}


def _is_called(writer: Generator, named: str) -> bool:
    names = {named, named.rstrip("/").rpartition("/")[2]}
    return bool(names & {writer.name, writer.id})


def _did(cycle: CycleState, writer: Generator) -> Mapping[str, float]:
    """Return what the counts of all that it wrote in a cycle come to."""
    did: Counter[str] = Counter()
    for done in cycle.completed.values():
        if done.phase == Phase.GENERATE and done.summary.get("generator") == writer.id:
            did.update(done.counts)
    return did
