"""Leaving a source out for good: the command that asks for it.

Owns its checks, and what it records. Doesn't know samples (`cycle.data.purge` says which are
meant), or how it is proved (`catalog.cycle_sources`).
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from jupiterd.cluster.facts.facts import CycleStarted, SourcePurged
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.daemon.catalog.cycle_sources import source_names
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import CycleId
from jupiterd.protocol.commands.data_commands import PurgeSource

MAX_SOURCE_CHARACTERS = 2048


async def purge_source(term: Term, command: PurgeSource) -> dict[str, Any]:
    """Record that nothing of a source is used any more, by a domain's cycles or one cycle.

    Raises:
        NotFoundError: no such cycle, domain or source.
        UsageError: no name or address is meant, or several cycles.
    """
    source = command.source.strip()
    if not (0 < len(source) <= MAX_SOURCE_CHARACTERS and source.isprintable()):
        raise UsageError(
            f"a source's name or address has 1 to {MAX_SOURCE_CHARACTERS} printable characters"
        )
    state = term.state
    started = [run.started for run in _cycles(state) if run.started is not None]
    named = command.cycle or ""
    chosen = _of_cycle(started, named) if named else _of_domain(started, command.domain)
    domain, cycle = chosen[0].domain, chosen[0].cycle if named else ""
    _check_that_it_is_known(source, chosen)
    is_known = source in state.purged(domain, CycleId(cycle))
    if not is_known:
        await term.record(SourcePurged(domain, source, cycle))
    return {"source": source, "domain": domain, "cycle": cycle, "already": is_known}


def _cycles(state: State) -> list[CycleState]:
    return sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)


def _of_cycle(started: Iterable[CycleStarted], wanted: str) -> list[CycleStarted]:
    found = meant([Named(each, each.cycle, [each.cycle]) for each in started], wanted)
    if not found:
        raise NotFoundError(f"no cycle is called {wanted}", "jupiterctl cycle list shows them")
    return found


def _of_domain(started: list[CycleStarted], wanted: str | None) -> list[CycleStarted]:
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
