"""Which node people mean: by its id, the beginning of one, or its name.

Owns the rule. Doesn't know where the text comes from.
"""

from collections.abc import Mapping

from jupiterd.cluster.facts import NodeAdmitted
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import NodeId, short


def find_node(members: Mapping[NodeId, NodeAdmitted], wanted: str) -> NodeId:
    """Return the member that is meant.

    Raises:
        NotFoundError: there is none.
        UsageError: there are several.
    """
    named = [node for node, fact in members.items() if wanted in (node, fact.name)]
    found = named or [node for node in members if wanted and node.startswith(wanted)]
    if not found:
        raise NotFoundError(f"no node is called {wanted}", "jupiterctl node list shows them")
    if len(found) > 1:
        ids = ", ".join(sorted(short(node) for node in found))
        raise UsageError(f"{wanted} could be any of {ids}", "name it by its id")
    return found[0]
