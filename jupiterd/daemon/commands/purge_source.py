"""Leaving a source out for good: the command that asks for it, and the proof that it was done.

Owns its checks, what it records, and where the proof stands in the ledger. Doesn't know samples:
`cycle.purge` says which are meant, and packing counts them.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import CycleStarted, SourcePurged, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT, NOT_COLLECTED_COUNT, PURGED_COUNT
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.errors import InvalidDomainError, NotFoundError, UsageError
from jupiterd.ids import CycleId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jupiterd.cycle.domain.data_sources import DataSource
    from jupiterd.daemon.leader.leading import Leading

MAX_SOURCE_CHARACTERS = 2048


async def purge_source(leading: "Leading", arguments: "Mapping[str, Any]") -> dict[str, Any]:
    """Record that nothing of a source is used any more, by a domain's cycles or one cycle.

    Raises:
        NotFoundError: no such cycle, domain or source.
        UsageError: no name or address is meant, or several cycles.
    """
    source = str(arguments["source"]).strip()
    if not (0 < len(source) <= MAX_SOURCE_CHARACTERS and source.isprintable()):
        raise UsageError(
            f"a source's name or address has 1 to {MAX_SOURCE_CHARACTERS} printable characters"
        )
    state = leading.journal.state
    started = [run.started for run in _cycles(state) if run.started is not None]
    named = str(arguments.get("cycle") or "")
    chosen = _of_cycle(started, named) if named else _of_domain(started, arguments.get("domain"))
    domain, cycle = chosen[0].domain, chosen[0].cycle if named else ""
    _check_that_it_is_known(source, chosen)
    is_known = source in state.purged(domain, CycleId(cycle))
    if not is_known:
        await leading.record(SourcePurged(domain, source, cycle))
    return {"source": source, "domain": domain, "cycle": cycle, "already": is_known}


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
        "samples": int(packed.counts[PURGED_COUNT + source]),
        "left_out": sum(int(fact.counts.get(LEFT_OUT_COUNT + source, 0)) for fact in of_round),
        "collected": all(NOT_COLLECTED_COUNT + source not in fact.counts for fact in of_round),
    }


def _cycles(state: State) -> list[CycleState]:
    return sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)


def _of_cycle(started: Iterable[CycleStarted], wanted: str) -> list[CycleStarted]:
    found = meant([Named(each, each.cycle, [each.cycle]) for each in started], wanted)
    if not found:
        raise NotFoundError(f"no cycle is called {wanted}", "jupiterctl cycle list shows them")
    return found


def _of_domain(started: list[CycleStarted], wanted: object) -> list[CycleStarted]:
    """Return the cycles of a domain, the newest first; without one that of the newest cycle."""
    domain = wanted or (started[0].domain if started else "")
    found = [each for each in started if each.domain == domain]
    if not found:
        raise NotFoundError(
            f"no cycle was started on domain {domain}" if domain else "no cycle was started",
            "a purge is about the data of cycles; jupiterctl cycle status shows the latest",
        )
    return found


def _check_that_it_is_known(source: str, started: Iterable[CycleStarted]) -> None:
    """Raise NotFoundError for a name that no domain file has: most likely it is mistyped."""
    if ":" in source:
        return
    known = sorted({name for each in started for name in source_names(each)})
    if source not in known:
        raise NotFoundError(
            f"no source of that domain is called {source}",
            f"sources: {', '.join(known)}; or give an address, such as https://example.org/docs",
        )


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
