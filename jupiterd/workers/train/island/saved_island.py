"""An island's part of a checkpoint: the outer state, the rounds that are open, and its own part.

Owns what lies between an island and the tensors of that file. Doesn't know the rest of a
checkpoint. Another island may go on from it: it begins with the outer state, and has trained
nothing yet.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from jupiterd.errors import CorruptArtifactError
from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.compression import Kind
from jupiterd.workers.islands.flat import FlatLayout, Vector
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.islands.outer_step import OuterState
from jupiterd.workers.tensor_file import load_tensors
from jupiterd.workers.train.checkpoints.checkpoint import OUTER_FILE, STATE_DIR
from jupiterd.workers.training_engine import Tensors, TrainingEngine

NOT_OURS = "a checkpoint's place between outer steps is not ours"


class SavedIsland:
    """What a checkpoint has of an island, as it is written."""

    def __init__(self, island: IslandView) -> None:
        self._island = island

    def place(self) -> Mapping[str, Any] | None:
        """Return the rounds that are open, and which is trained; None before the first one."""
        island = self._island
        if not island.orders:
            return None
        current = None if island.current is None else asdict(island.current)
        return {"orders": [asdict(each) for each in island.orders], "current": current}

    def tensors(self) -> Tensors:
        """Return the outer state and what is the island's own, as KIND.NAME.

        A pseudo-gradient that is being packed, or was sent and isn't merged, needn't be waited for:
        whoever goes on from this packs it once more.
        """
        island = self._island
        vectors: dict[str, Vector | None] = {
            "weights": island.state.weights,
            "momentum": island.state.momentum,
            "residual": island.packer.residual,
            "base": None if island.base is island.state.weights else island.base,
        }
        return {
            f"{kind}.{name}": values
            for kind, vector in vectors.items()
            if vector is not None
            for name, values in island.layout.tensors(vector).items()
        }


def load_island(
    checkpoint: Path, place: Mapping[str, Any], name: str, engine: TrainingEngine, kind: Kind
) -> IslandView:
    """Return the island of that name as it was, in an engine that has the checkpoint's weights.

    place: what `SavedIsland.place` gave

    Raises:
        CorruptArtifactError: the file isn't there or not whole, or is of another model.
    """
    orders, current = _orders(place)
    found = load_tensors(checkpoint / STATE_DIR / OUTER_FILE)
    layout = FlatLayout.of(engine.weights())
    begun = OuterState(_vector(found, "weights", layout), _vector(found, "momentum", layout))
    if orders[-1].island != name:
        island = IslandView(engine, kind, begun)
        island.fall_back()
        island.orders = [replace(e, island=name, batch_sequences=0, positions="") for e in orders]
        return island
    island = IslandView(engine, kind, begun, _vector(found, "residual", layout))
    base = _some_vector(found, "base", layout)
    island.base = begun.weights if base is None else base
    island.orders, island.current = orders, current
    return island


def _orders(place: Mapping[str, Any]) -> tuple[list[RoundOrder], RoundOrder | None]:
    match place:
        case {"orders": [_, *_] as orders, "current": current, **rest} if not rest:
            return [*map(_order, orders)], None if current is None else _order(current)
        case _:
            raise CorruptArtifactError(NOT_OURS)


def _order(plain: Mapping[str, Any]) -> RoundOrder:
    """Rebuild one order; raises CorruptArtifactError where it is none."""
    found: dict[str, Any] = {"scored_step": 0, **plain}  # it came later than the others
    kinds = {field.name: field.type for field in fields(RoundOrder)}
    if {name: type(value) for name, value in found.items()} != kinds:
        raise CorruptArtifactError(NOT_OURS)
    return RoundOrder(**found)


def _some_vector(tensors: Tensors, kind: str, layout: FlatLayout) -> Vector | None:
    is_there = any(name.startswith(f"{kind}.") for name in tensors)
    return _vector(tensors, kind, layout) if is_there else None


def _vector(tensors: Tensors, kind: str, layout: FlatLayout) -> Vector:
    prefix = f"{kind}."
    found = {
        name.removeprefix(prefix): values
        for name, values in tensors.items()
        if name.startswith(prefix)
    }
    if FlatLayout.of(found) != layout:
        raise CorruptArtifactError(f"an island's checkpoint has no {kind} of this model")
    return layout.flat(found)
