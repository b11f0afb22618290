"""An island's part of a checkpoint: where its round began, its momentum, and what its ways left.

Owns the way between an island and the tensors of that file. Doesn't know the rest of a checkpoint.
Another island may go on from it: it begins where the round began, and has left nothing yet.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.islands.flat import Layout, Vector
from jupiterd.workers.islands.island import Island
from jupiterd.workers.islands.outer_step import OuterState
from jupiterd.workers.islands.packing import Kind
from jupiterd.workers.islands.round_order import RoundOrder
from jupiterd.workers.train.checkpoint import OUTER_FILE, STATE_DIR
from jupiterd.workers.train.engine import Engine, Tensors
from jupiterd.workers.train.tensor_file import load_tensors


class SavedIsland:
    """What a checkpoint has of an island, as it is written."""

    def __init__(self, island: Island) -> None:
        self._island = island

    def place(self) -> Mapping[str, Any] | None:
        """Return its order since the last outer step; None before the first one."""
        order = self._island.order
        return None if order is None else order.to_plain()

    def tensors(self) -> Tensors:
        """Return the outer state and the residual, as KIND.NAME."""
        island = self._island
        vectors = {
            "weights": island.state.weights,
            "momentum": island.state.momentum,
            "residual": island.residual,
        }
        return {
            f"{kind}.{name}": values
            for kind, vector in vectors.items()
            for name, values in island.layout.tensors(vector).items()
        }


def load_island(
    checkpoint: Path, place: Mapping[str, Any], name: str, engine: Engine, kind: Kind
) -> Island:
    """Return the island of that name as it was, in an engine that has the checkpoint's weights.

    place: what `SavedIsland.place` gave

    Raises:
        CorruptArtifactError: the file isn't there or not whole, or is of another model.
    """
    order = RoundOrder.from_plain(place)
    found = load_tensors(checkpoint / STATE_DIR / OUTER_FILE)
    layout = Layout.of(engine.weights())
    begun = OuterState(_vector(found, "weights", layout), _vector(found, "momentum", layout))
    if order.island == name:
        residual = _vector(found, "residual", layout)
        return Island(engine, kind, begun, residual, order)
    island = Island(engine, kind, begun)
    island.take(begun, replace(order, island=name, batch_sequences=0, positions=""))
    return island


def _vector(tensors: Tensors, kind: str, layout: Layout) -> Vector:
    prefix = f"{kind}."
    found = {
        name.removeprefix(prefix): values
        for name, values in tensors.items()
        if name.startswith(prefix)
    }
    if Layout.of(found) != layout:
        raise CorruptArtifactError(f"an island's checkpoint has no {kind} of this model")
    return layout.flat(found)
