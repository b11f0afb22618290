"""What a training may use of members' memory, in one line of text: `mini=8 studio=16.5`, in GB.

Owns that form, with ids or with the names that people use. Doesn't know what a training needs.
"""

import math
from collections.abc import Mapping

from jupiterd.cluster.values.node_names import find_node
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId

GB = 1e9
EXAMPLE = "such as --memory mini=8 --memory studio=16"

MemoryLimits = Mapping[NodeId, int]
"""Node -> the bytes that all of its ranks may use together."""


def written(limits: MemoryLimits) -> str:
    """Return limits as settings have them; none is empty."""
    return " ".join(f"{node}={limits[node] / GB:g}" for node in sorted(limits))


def read(text: str) -> dict[NodeId, int]:
    """Return the limits that `written` wrote."""
    pairs = (part.rpartition("=") for part in text.split())
    return {NodeId(node): round(float(size) * GB) for node, _, size in pairs}


def meant(text: str, names: Mapping[NodeId, str]) -> dict[NodeId, int]:
    """Return the limits that people have written, with names of nodes in place of ids.

    Raises:
        NotFoundError: no node is called so.
        UsageError: a limit is no number of GB, or a node has two.
    """
    found: dict[NodeId, int] = {}
    for part in text.split():
        name, _, size = part.rpartition("=")
        node = find_node(names, name) if name else _refuse(part)
        if node in found:
            raise UsageError(f"--memory names {names[node]} twice", EXAMPLE)
        found[node] = _bytes(part, size)
    return found


def _bytes(part: str, size: str) -> int:
    try:
        size_gb = float(size)
    except ValueError:
        size_gb = math.nan
    if not (math.isfinite(size_gb) and size_gb * GB >= 1):
        _refuse(part)
    return round(size_gb * GB)


def _refuse(part: str) -> NodeId:
    raise UsageError(f"--memory {part}: that is no NODE=GB", EXAMPLE)
