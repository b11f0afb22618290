"""A run's islands in one line of text, as its settings carry them: `mlx:a,b torch:c`.

Owns that form, with ids or with the names that people use. Doesn't know how islands are chosen.
"""

from collections.abc import Iterable, Mapping

from jupiterd.cluster.planning.layouts import Island
from jupiterd.cluster.values.node_names import find_node
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId

EXAMPLE = "such as --islands 'mlx:mini,studio torch:box'"


def written(islands: Iterable[Island]) -> str:
    """Return islands as settings have them; none is empty."""
    return " ".join(f"{island.engine}:{','.join(island.nodes)}" for island in islands)


def read(text: str) -> tuple[Island, ...]:
    """Return the islands that `written` wrote."""
    pairs = [part.partition(":") for part in text.split()]
    return tuple(Island.of(engine, map(NodeId, nodes.split(","))) for engine, _, nodes in pairs)


def meant(text: str, names: Mapping[NodeId, str]) -> tuple[Island, ...]:
    """Return the islands that people have written, with names of nodes in place of ids.

    Raises:
        NotFoundError: no node is called so.
        UsageError: there are fewer than two, or a node is in two of them.
    """
    islands = tuple(
        Island.of(island.engine, (find_node(names, node) for node in island.nodes))
        for island in read(text)
    )
    if len(islands) < 2:
        raise UsageError(f"--islands {text}: one island is no islands", EXAMPLE)
    nodes = [node for island in islands for node in island.nodes]
    twice = sorted({names[node] for node in nodes if nodes.count(node) > 1})
    if twice:
        raise UsageError(f"--islands names {twice[0]} twice", "each machine is part of one island")
    return islands
