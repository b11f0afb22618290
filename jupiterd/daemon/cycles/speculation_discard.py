"""What becomes of text that was written ahead, where it turns out that somebody else should write.

Owns the fact that is recorded then: the generating of that round begins anew, under new ids, and
nothing that was recorded is withdrawn. Doesn't know why another writes.
"""

from collections.abc import Sequence

from jupiterd.cluster.facts.phase_facts import PhaseRedone
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.promotion import ActiveGenerators, writers_of
from jupiterd.cycle.phases.boundary import with_those_behind
from jupiterd.ids import CycleId


def is_written_ahead(cycle: CycleState, round_number: int) -> bool:
    """Say whether something of a round was generated already."""
    return any(
        number == round_number and done.phase == Phase.GENERATE
        for (number, _), done in cycle.completed.items()
    )


def writes_otherwise(
    templates: Sequence[str],
    before: ActiveGenerators,
    after: ActiveGenerators,
    named: Generator | None,
) -> bool:
    """Say whether somebody else than before is a template's usual writer."""
    return any(_usual(kind, before, named) != _usual(kind, after, named) for kind in templates)


def _usual(kind: str, standing: ActiveGenerators, named: Generator | None) -> Generator | None:
    writers = writers_of(kind, standing, named)
    return writers[0].generator if writers else None


def anew(cycle: CycleState, name: CycleId, round_number: int) -> list[PhaseRedone]:
    """Return the fact by which a round's generating begins anew; none where nothing was written."""
    if not is_written_ahead(cycle, round_number):
        return []
    phases = tuple(map(str, with_those_behind(Phase.GENERATE)))
    redo = cycle.steering.next_redo(round_number)
    return [PhaseRedone(name, round_number, str(Phase.GENERATE), phases, redo)]
