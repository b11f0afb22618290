"""Who generates in a cycle, as status shows it.

Owns the words. Who comes into force, and why, is `cycle.generation.promotion`'s.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.domain.generator import generator_from
from jupiterd.cycle.generation.promotion import ActiveGenerators, self_hosting, writers_of
from jupiterd.daemon.catalog.round_history import acceptance_in, active_generators_of
from jupiterd.errors import JupiterError

if TYPE_CHECKING:  # its models take 8 MB, idle or not
    from jupiterd.cycle.domain.domain import Domain


def generation_document(cycle: CycleState) -> dict[str, Any]:
    """Return who writes in the round that comes or runs, and what students wrote in the last one.

    There is nothing of what is no cycle, or of a domain that this version can't read.
    """
    nothing = {"self_hosting": None, "self_hosting_round": None, "writers": [], "promotions": []}
    if (domain := domain_of(cycle)) is None or cycle.started is None:
        return nothing
    named = generator_from(cycle.started.generator)
    standing = active_generators_of(cycle, domain)
    rows = [
        {
            "template": kind,
            "generator": writer.generator.id,
            "name": writer.generator.name,
            "is_own": writer.generator != named,
            "is_canary": writer.generator.artifact == standing.canary,
            "share": writer.share,
        }
        for kind in domain.generation.kinds
        for writer in writers_of(kind, standing, named)
    ]
    number, share = _last_share(cycle, "" if named is None else named.id)
    return {
        "self_hosting": share,
        "self_hosting_round": number,
        "writers": rows,
        "promotions": list(standing.notices),
    }


def active_generators_before(cycle: CycleState, number: int) -> ActiveGenerators:
    """Return which students were in force when a round began."""
    domain = domain_of(cycle)
    if domain is None:
        return ActiveGenerators()
    return active_generators_of(
        cycle, domain, [each for each in cycle.rounds if each.round < number]
    )


def domain_of(cycle: CycleState) -> "Domain | None":
    """Return a cycle's domain as it is in force in its current round.

    None where there is none, or none that this version reads.
    """
    if cycle.started is None:
        return None
    changes = cycle.steering.settings(cycle.rounds_committed + 1)
    text = cycle.started.domain_yaml, cycle.started.domain
    return _parsed(*text, tuple(changes.items()))


@lru_cache(maxsize=8)
def _parsed(text: str, name: str, changes: tuple[tuple[str, str], ...]) -> "Domain | None":
    from jupiterd.cycle.domain.changed_settings import with_changes
    from jupiterd.cycle.domain.domain import parse_domain

    try:
        return with_changes(parse_domain(text, f"{name}.yaml"), dict(changes))
    except JupiterError:  # of a newer version, or too old
        return None


def _last_share(cycle: CycleState, named: str) -> tuple[int | None, float | None]:
    """Return the last round that has synthetic text of its own, and our students' part of it."""
    numbers = {number for number, _ in cycle.completed}
    for number in sorted(numbers, reverse=True):
        share = self_hosting(acceptance_in(cycle, number), named)
        if share is not None:
            return number, share
    return None, None
