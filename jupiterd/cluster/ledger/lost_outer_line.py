"""The line of outer steps where it ends in what nobody in reach could go on from.

Owns which steps are set aside then, so that the line ends in the best one that somebody could go on
from. Doesn't know who holds which ways, or for how long they have been missing.

A machine that was cut off for a while takes outer steps alone. Back among the others, it may die
before anybody has the ways that those merged: its line counts, and only it could go on.
"""

from collections.abc import Collection, Iterator

from jupiterd.cluster.ledger.outer_line import Steps, precedence, whole


def steps_to_park(steps: Steps, missing: Collection[str]) -> list[str]:
    """Return which steps no line may lead through any more; none where the line is as it should be.

    Args:
        steps: all of a round that aren't parked.
        missing: those of which a way can't be had from anybody.
    """
    known = whole(steps)
    able = [key for key in known if key not in missing]
    if not able:
        return []
    rank = precedence(known)
    best = max(able, key=rank)
    path = {*_upward(known, best)}
    better = (key for key in known if rank(key) > rank(best))
    return sorted({_first_off(known, path, key) for key in better})


def _first_off(steps: Steps, path: Collection[str], key: str) -> str:
    """Return the step at which the line to this one leaves a path."""
    return [each for each in _upward(steps, key) if each not in path][-1]


def _upward(steps: Steps, key: str) -> Iterator[str]:
    while key:
        yield key
        key = steps[key].parent
