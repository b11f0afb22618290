"""The sources of a cycle, and the proof that those were left out which people purged.

Owns where the proof stands in the ledger. Doesn't know samples: `cycle.data.purge` says which are
meant, and packing counts them.
"""

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import CycleStarted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT, NOT_COLLECTED_COUNT, PURGED_COUNT
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.errors import InvalidDomainError

if TYPE_CHECKING:
    from jupiterd.cycle.domain.data_sources import DataSource


def source_names(started: CycleStarted) -> list[str]:
    """Return the names of a cycle's sources in the order of its domain file."""
    return [source.name for source in sources_of(started)]


def sources_of(started: CycleStarted) -> "tuple[DataSource, ...]":
    """Return a cycle's sources in the order of its domain file; none where that can't be read."""
    from jupiterd.cycle.domain.domain import parse_domain  # its models take 8 MB, idle or not

    try:
        domain = parse_domain(started.domain_yaml, f"{started.domain}.yaml")
    except InvalidDomainError:  # of another version
        return ()
    return domain.data_sources


def purge_proofs(run: CycleState, state: State) -> list[dict[str, Any]]:
    """Return for each purged source of a cycle what every round packed since holds of it."""
    if run.started is None:
        return []
    packed = sorted(
        (fact for fact in run.completed.values() if fact.phase == Phase.PACK),
        key=attrgetter("round"),
    )
    return [
        {
            "source": source,
            "rounds": [
                _proof_of(source, fact, run)
                for fact in packed
                if PURGED_COUNT + source in fact.counts
            ],
        }
        for source in sorted(state.purged(run.started.domain, run.started.cycle))
    ]


def _proof_of(source: str, packed: WorkCompleted, run: CycleState) -> dict[str, Any]:
    """Return what a packed round holds of a source, and whether there was anything to leave out."""
    of_round = work_that_counts(
        fact for fact in run.completed.values() if fact.round == packed.round
    )
    return {
        "round": packed.round,
        "samples": whole_count(packed.counts, PURGED_COUNT + source),
        "left_out": sum(whole_count(fact.counts, LEFT_OUT_COUNT + source) for fact in of_round),
        "collected": all(NOT_COLLECTED_COUNT + source not in fact.counts for fact in of_round),
    }
