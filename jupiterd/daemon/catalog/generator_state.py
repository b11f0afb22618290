"""Who generates in a cycle and which of its models is promoted, as status shows it.

Owns the words, and which of several that write is the promoted one. Who comes into force, and why,
is `cycle.generation.promotion`'s; who is promoted where no text is to be generated,
`cycle.generation.promoted_models`'.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.domain.generator import generator_from
from jupiterd.cycle.generation.promotion import ActiveGenerators, self_hosting, writers_of
from jupiterd.daemon.catalog.round_history import (
    acceptance_in,
    active_generators_of,
    promoted_models_of,
)
from jupiterd.errors import JupiterError

if TYPE_CHECKING:  # its models take 8 MB, idle or not
    from jupiterd.cycle.domain.domain import Domain


def generation_document(cycle: CycleState) -> dict[str, Any]:
    """Return who writes in the round that comes or runs, and what students wrote in the last one.

    `promoted` is the id of the cycle's promoted model, or None, and `promotions` says how it came
    to be so. There is nothing of what is no cycle, or of a domain that this version can't read.
    """
    nothing = {
        "self_hosting": None, "self_hosting_round": None, "writers": [], "promotions": [],
        "promoted": None,
    }  # fmt: skip
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
    writers = [str(row["generator"]) for row in rows]
    promoted, notices = _newest_writer(cycle, writers), standing.notices
    if not domain.wants_generated_text:
        models = promoted_models_of(cycle, domain)
        promoted, notices = models.newest, models.notices
    return {
        "self_hosting": share,
        "self_hosting_round": number,
        "writers": rows,
        "promotions": list(notices),
        "promoted": promoted or None,
    }


def is_back_at_its_base(cycle: CycleState) -> bool:
    """Say whether students of a cycle were promoted, and all were rolled back again."""
    domain = domain_of(cycle)
    if domain is None:
        return False
    if domain.wants_generated_text:
        writing = active_generators_of(cycle, domain)
        return bool(writing.rolled_back) and not writing.students
    promoted = promoted_models_of(cycle, domain)
    return bool(promoted.rolled_back) and not promoted.students


def _newest_writer(cycle: CycleState, writers: Iterable[str]) -> str:
    """Return the writer that the last round has trained; where none did, the folder of others."""
    trained = {done.final_checkpoint: done.round for done in cycle.rounds}
    others = "" if cycle.started is None else str(cycle.started.generator.get("artifact") or "")
    rounds = {others: 0} | trained
    known = [each for each in writers if each and each in rounds]
    return max(known, key=rounds.__getitem__, default="")


def active_generators_before(cycle: CycleState, number: int) -> ActiveGenerators:
    """Return which students were in force when a round began."""
    domain = domain_of(cycle)
    if domain is None:
        return ActiveGenerators()
    return active_generators_of(
        cycle, domain, [each for each in cycle.rounds if each.round < number]
    )


def has_templates(cycle: CycleState) -> bool:
    """Say whether a cycle's domain asks for generated text, as far as this version can read it."""
    domain = domain_of(cycle)
    return domain is None or bool(domain.generation.templates)


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
