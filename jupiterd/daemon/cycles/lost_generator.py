"""A generator that couldn't be had in the round that goes on: said until that round ends.

Owns what is said of it, from the facts of the round's items. Doesn't know how often it was asked
(`generating`), or where people see it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from jupiterd.cluster.health.alert_news import name_of
from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.generation.generation_options import WITHOUT, without_words
from jupiterd.daemon.catalog.effective_work import work_that_counts

LOST = "generator-lost"


def lost_generator(cycle: CycleState) -> dict[str, Any] | None:
    """Return the generator that the current round does without, in all or in part; None: none."""
    number = cycle.rounds_committed + 1
    done = [*work_that_counts(cycle.completed_in(number, Phase.GENERATE).values())]
    lost = [fact for fact in done if WITHOUT in fact.summary]
    if not lost or cycle.started is None or number > cycle.rounds_wanted:
        return None
    (reason,) = without_words([fact.summary for fact in done])
    name = str(cycle.started.generator.get("name", ""))
    return {
        "round": number,
        "name": name,
        "reason": str(lost[0].summary[WITHOUT]),
        "items": len(lost),
        "of": len(done),
        "told": f"generator {name} is lost: {reason}; the next round asks it again",
    }


def lost_generator_findings(cycles: Iterable[CycleState]) -> Iterator[AlertCondition]:
    """Yield the notice about each cycle that goes on without its generator."""
    for cycle in cycles:
        if cycle.begun is not None and cycle.goes_on and (lost := lost_generator(cycle)):
            cause = f"round {lost['round']}"
            yield AlertCondition(LOST, cycle.begun.cycle, name_of(cycle), lost["reason"], cause)
