"""The outer steps of a run's islands, and which branch of them counts.

Owns the choice between branches: each group of machines that was apart has continued its own. Owns
also which steps are abandoned when nobody in reach can continue the branch that counts. Doesn't
know islands, weights, who holds which pseudo-gradients, or for how long any was missing.

Each step names its parent. The branch that counts ends in the step with the greatest number; of
equal ones, in the one with the most tokens, then with the greatest hash. So all nodes agree.

A machine that was cut off for a while takes outer steps alone. Back among the others, it may die
before anybody has the pseudo-gradients that those steps merged: its branch counts then, and only it
could continue it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from jupiterd.cluster.facts.facts import OuterStepTaken

Steps = Mapping[str, OuterStepTaken]
"""Outer steps by the hashes of their facts."""


def outer_branch(steps: Steps) -> Steps:
    """Return the branch that counts, from its first step to its last; empty before the first."""
    known = whole(steps)
    if not known:
        return {}
    leaf = max(known, key=precedence(known))
    return {key: steps[key] for key in reversed([*_upward(steps, leaf)])}


def whole(steps: Steps) -> Steps:
    """Return the steps all of whose ancestors are known, back to a first step."""
    found: dict[str, OuterStepTaken] = {}
    for key in sorted(steps, key=lambda key: steps[key].number):
        step = steps[key]
        if step.parent in found if step.number else not step.parent:
            found[key] = step
    return found


def precedence(steps: Steps) -> Callable[[str], tuple[int, int, str]]:
    """Return a sort key for steps' hashes: the branch that counts ends in the greatest."""
    return lambda key: (steps[key].number, steps[key].total_tokens, key)


def steps_to_abandon(steps: Steps, missing: Collection[str]) -> list[str]:
    """Return the steps to abandon, so that the branch ends in the best step that can be continued.

    Empty: the branch that counts can be continued, or no step can.

    Args:
        steps: all of a round that aren't abandoned.
        missing: hashes of steps of which a pseudo-gradient is on no machine in reach.
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
    """Return the first step of the branch to `key` that isn't on the path."""
    return [each for each in _upward(steps, key) if each not in path][-1]


def _upward(steps: Steps, key: str) -> Iterator[str]:
    while key:
        yield key
        key = steps[key].parent
