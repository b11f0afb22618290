"""The outer steps of a run's islands, and the line of them that counts.

Owns which of several lines does: groups that were apart have each gone on. Doesn't know islands,
ways or weights. A step hangs below the one that it names; the line leads to the leaf with the most
steps, then the most tokens, then the greatest hash: the same on every node.
"""

from collections.abc import Callable, Mapping

from jupiterd.cluster.facts.facts import OuterStepTaken

Steps = Mapping[str, OuterStepTaken]
"""By the hashes of their facts."""


def outer_line(steps: Steps) -> Steps:
    """Return the line that counts, from its first step to its last; nothing before the first."""
    known = whole(steps)
    if not known:
        return {}
    leaf = max(known, key=precedence(known))
    line: list[str] = []
    while leaf:
        line.append(leaf)
        leaf = steps[leaf].parent
    return {key: steps[key] for key in reversed(line)}


def whole(steps: Steps) -> Steps:
    """Return those to which a line leads from a beginning."""
    found: dict[str, OuterStepTaken] = {}
    for key in sorted(steps, key=lambda key: steps[key].number):
        step = steps[key]
        if step.parent in found if step.number else not step.parent:
            found[key] = step
    return found


def precedence(steps: Steps) -> Callable[[str], tuple[int, int, str]]:
    """Return what the line's end is the greatest of."""
    return lambda key: (steps[key].number, steps[key].total_tokens, key)
