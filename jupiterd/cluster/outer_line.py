"""The outer steps of a run's islands, and the line of them that counts.

Owns which of several lines does: groups that were apart have each gone on. Doesn't know islands,
ways or weights. A step hangs below the one that it names; the line leads to the leaf with the most
steps, then the most tokens, then the greatest hash: the same on every node.
"""

from collections.abc import Mapping

from jupiterd.cluster.facts import OuterStepTaken

Steps = Mapping[str, OuterStepTaken]
"""By the hashes of their facts."""


def outer_line(steps: Steps) -> Steps:
    """Return the line that counts, from its first step to its last; nothing before the first."""
    whole: dict[str, bool] = {}
    for key in sorted(steps, key=lambda key: steps[key].number):
        parent = steps[key].parent
        whole[key] = whole.get(parent, False) if steps[key].number else not parent
    leaves = [key for key, is_whole in whole.items() if is_whole]
    if not leaves:
        return {}
    leaf = max(leaves, key=lambda key: (steps[key].number, steps[key].total_tokens, key))
    line: list[str] = []
    while leaf:
        line.append(leaf)
        leaf = steps[leaf].parent
    return {key: steps[key] for key in reversed(line)}
