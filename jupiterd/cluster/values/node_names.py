"""Which node people mean: by its id, the beginning of one, or its name.

Owns the rule. Doesn't know where the text comes from.
"""

from collections import Counter
from collections.abc import Mapping

from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import NodeId, short


def distinct_names(names: Mapping[NodeId, str]) -> dict[NodeId, str]:
    """Return the names as they are shown, such as `vm (e7a31582)` where several are called `vm`."""
    often = Counter(names.values())
    return {
        node: f"{name} ({short(node)})" if name and often[name] > 1 else name or short(node)
        for node, name in names.items()
    }


def find_node(names: Mapping[NodeId, str], wanted: str) -> NodeId:
    """Return the node that is meant, among these with the names that people see.

    Raises:
        NotFoundError: there is none.
        UsageError: there are several.
    """
    named = [node for node, name in names.items() if wanted in (node, name)]
    found = named or [node for node in names if wanted and node.startswith(wanted)]
    if not found:
        raise NotFoundError(f"no node is called {wanted}", "jupiterctl node list shows them")
    if len(found) > 1:
        ids = ", ".join(sorted(short(node) for node in found))
        raise UsageError(f"{wanted} could be any of {ids}", "name it by its id")
    return found[0]


def find_waiting(names: Mapping[NodeId, str], wanted: str) -> NodeId:
    """Return the node that is meant among these, which wait to be let in; raises as `find_node`."""
    try:
        return find_node(names, wanted)
    except NotFoundError as error:
        raise NotFoundError(
            f"no node that waits to be let in is called {wanted}",
            "jupiterctl node list shows who waits; start jupiterd on the new machine first",
        ) from error
