"""What a branch is called, and which one people mean.

Owns the rule. Doesn't know where the text comes from.
"""

from collections.abc import Iterable

from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import CycleId, short


def branch_name(cycle: CycleId, leaf: str) -> str:
    """Return the name of the branch that ends in a leaf: the same on every node."""
    return f"{short(cycle)}-{short(leaf)}"


def find_branch(known: Iterable[tuple[CycleId, str]], wanted: str) -> tuple[CycleId, str]:
    """Return the cycle and leaf that are meant: by the branch's name, or the beginning of a leaf.

    Raises:
        NotFoundError: there is none.
        UsageError: there are several.
    """
    found = [(cycle, leaf) for cycle, leaf in known if wanted and _is_meant(cycle, leaf, wanted)]
    if not found:
        raise NotFoundError(
            f"no branch is called {wanted}", "jupiterctl cluster branches shows them"
        )
    if len(found) > 1:
        names = ", ".join(sorted(branch_name(*each) for each in found))
        raise UsageError(f"{wanted} could be any of {names}", "name it in full")
    return found[0]


def _is_meant(cycle: CycleId, leaf: str, wanted: str) -> bool:
    return f"{short(cycle)}-{leaf}".startswith(wanted) or leaf.startswith(wanted)
