"""The finished work that counts: all but what was done once more after a purge.

Owns reading the facts for that decision, which is `cycle.data.batch_merge`'s.
"""

from collections.abc import Iterable

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.data.batch_merge import without_repeated


def work_that_counts(done: Iterable[WorkCompleted]) -> list[WorkCompleted]:
    """Return of one run's finished work what counts, in the same order."""
    facts = list(done)
    items = without_repeated({fact.item: fact.counts for fact in facts})
    return [fact for fact in facts if fact.item in items]
