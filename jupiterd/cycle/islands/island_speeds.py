"""How fast islands are that have just been away: by what they took of a step when they were there.

Owns that guess. Pure. Doesn't know how speeds are measured, or what comes of them.
"""

from collections.abc import Collection, Iterable, Mapping


def speeds_before(
    away: Iterable[str], measured: Mapping[str, float], rounds: Collection[Mapping[str, int]]
) -> dict[str, float]:
    """Return the speeds of islands that were away, of those of which anything is known.

    Args:
        away: islands that had no part in the last round.
        measured: tokens per second of others, as measured in it; more than 0.
        rounds: what each island took of a step, in proportion to its speed; the newest first.
    """
    found: dict[str, float] = {}
    for name in away:
        took = next((took for took in rounds if name in took and took.keys() & measured.keys()), {})
        known = took.keys() & measured.keys()
        if known:
            of_one = sum(measured[each] for each in known) / sum(took[each] for each in known)
            found[name] = took[name] * of_one
    return found
