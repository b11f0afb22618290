"""A run's islands in one line of text, as its settings carry them: `mlx:a,b torch:c`.

Owns that form. Doesn't know how islands are chosen.
"""

from collections.abc import Iterable

from jupiterd.cluster.layouts import Island
from jupiterd.ids import NodeId


def written(islands: Iterable[Island]) -> str:
    """Return islands as settings have them; none is empty."""
    return " ".join(f"{island.engine}:{','.join(island.nodes)}" for island in islands)


def read(text: str) -> tuple[Island, ...]:
    """Return the islands that `written` wrote."""
    pairs = [part.partition(":") for part in text.split()]
    return tuple(Island.of(engine, map(NodeId, nodes.split(","))) for engine, _, nodes in pairs)
