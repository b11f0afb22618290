"""The phases of a cycle that dropped more than half, by its facts.

Owns which rounds are looked at, and the alarms about them. Pure: it is handed the facts. Doesn't
know when much is dropped (`cycle.data.heavy_drops`), or who sees it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.health.alert_news import name_of
from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.heavy_drops import HeavyDrop, heavy_drop, judged_phases
from jupiterd.cycle.data.phase_flow import flow_of
from jupiterd.cycle.rounds.phase_summary import total_counts
from jupiterd.daemon.catalog.effective_work import work_that_counts

CODE: Final = "mostly-dropped"
"""Of the alarm."""


def heavy_drops_of(cycle: CycleState) -> list[HeavyDrop]:
    """Return them, each phase in the newest round in which it has done anything."""
    found = (_of_phase(cycle, phase) for phase in judged_phases() if cycle.started is not None)
    return [each for each in found if each is not None]


def _of_phase(cycle: CycleState, phase: Phase) -> HeavyDrop | None:
    from jupiterd.daemon.catalog.phase_summary import own_work  # takes 0.4 MB, idle or not

    for number in (cycle.rounds_committed + 1, cycle.rounds_committed):
        if done := cycle.completed_in(number, phase):
            facts = own_work(phase, work_that_counts(done.values()))
            flow = flow_of(phase, total_counts([fact.counts for fact in facts]))
            return heavy_drop(number, phase, flow, has_failed=cycle.failed is not None)
    return None


@dataclass(frozen=True)
class DropFindings:
    """The findings of the newest cycle; what older ones dropped is over."""

    lasting: tuple[AlertCondition, ...] = ()
    """As long as the cycle goes on."""
    news: tuple[AlertCondition, ...] = ()
    """For a while, where it has ended."""


def drop_findings(state: State) -> DropFindings:
    """Return the alarms about what phases have dropped."""
    started = [cycle for cycle in state.cycles.values() if cycle.started is not None]
    newest = max(started, key=lambda cycle: (cycle.goes_on, cycle.start_order), default=None)
    if newest is None:
        return DropFindings()
    found = tuple(_findings(newest))
    return DropFindings(lasting=found) if newest.goes_on else DropFindings(news=found)


def _findings(cycle: CycleState) -> Iterator[AlertCondition]:
    own = "" if cycle.begun is None else cycle.begun.cycle
    for drop in heavy_drops_of(cycle):
        subject = f"round {drop.round} of {name_of(cycle)}"
        yield AlertCondition(
            CODE, f"{own}/{drop.phase}", subject, drop.summary, f"round {drop.round}"
        )
