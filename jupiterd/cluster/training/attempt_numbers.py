"""Which attempt of its round a gang is, as people count them.

Owns that count. Doesn't know what an attempt does. The cluster numbers the attempts of all cycles
together (`attempt`), so that an older one is told from a newer one wherever both are met.
"""

from collections.abc import Iterable

from jupiterd.cluster.facts.attempt_facts import AttemptOpened


def attempt_number(opened: Iterable[AttemptOpened], attempt: AttemptOpened) -> int:
    """Return the place of `attempt` among those of its cycle that its round has had, from 1 on."""
    return sum(each.round == attempt.round and each.attempt <= attempt.attempt for each in opened)
