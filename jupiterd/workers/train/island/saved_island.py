"""An island's part of a checkpoint: the outer state, the rounds that are open, and its own part.

Owns what lies between an island and the tensors of that file. Doesn't know the rest of a
checkpoint. Another island may go on from it: it begins with the outer state, and has trained
nothing yet.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jupiterd.errors import CorruptArtifactError
from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.compression import Kind
from jupiterd.workers.islands.flat import FlatLayout, Vector
from jupiterd.workers.islands.island import IslandView, held_vector
from jupiterd.workers.islands.outer_step import OuterState
from jupiterd.workers.tensor_file import StoredTensors
from jupiterd.workers.train.checkpoints.checkpoint import OUTER_FILE, STATE_DIR
from jupiterd.workers.training_engine import TensorPiece, Tensors, TrainingEngine

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
        layout = self._island.layout
        return {
            f"{kind}.{name}": values
            for kind, vector in self._vectors().items()
            for name, values in layout.tensors(vector).items()
        }

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of the same, whole, where no rank holds them whole."""
        shapes = self._island.layout.shapes
        return {f"{kind}.{name}": shape for kind in self._vectors() for name, shape in shapes}

    def pieces(self) -> Iterator[TensorPiece]:
        """Yield what this rank holds of the same."""
        for kind, vector in self._vectors().items():
            for name, start, values in self._island.held.pieces(vector):
                yield TensorPiece(f"{kind}.{name}", start, values)

    def _vectors(self) -> Mapping[str, Vector]:
        """Return what is kept by its kind."""
        island = self._island
        found = {
            "weights": island.state.weights,
            "momentum": island.state.momentum,
            "residual": island.packer.residual,
        }
        return found if island.base is island.state.weights else found | {"base": island.base}


def load_island(
    checkpoint: Path, place: Mapping[str, Any], name: str, engine: TrainingEngine, kind: Kind
) -> IslandView:
    """Return the island of that name as it was, in an engine that has the checkpoint's weights.

    place: what `SavedIsland.place` gave

    Raises:
        CorruptArtifactError: the file isn't there or not whole, or is of another model.
    """
    orders, current = _orders(place)
    found = _Stored(checkpoint / STATE_DIR / OUTER_FILE, engine)
    begun = OuterState(found.vector("weights"), found.vector("momentum"))
    if orders[-1].island != name:
        island = IslandView(engine, kind, begun)
        island.fall_back()
        island.orders = [replace(e, island=name, batch_sequences=0, positions="") for e in orders]
        return island
    island = IslandView(engine, kind, begun, found.vector("residual"))
    island.base = found.vector("base") if found.has("base") else begun.weights
    island.orders, island.current = orders, current
    return island


class _Stored:
    """What a checkpoint's file has of an island, read tensor by tensor."""

    def __init__(self, file: Path, engine: TrainingEngine) -> None:
        self._found = StoredTensors(file)
        self._held = held_vector(engine)

    def has(self, kind: str) -> bool:
        """Say whether there is anything of a kind."""
        return any(name.startswith(f"{kind}.") for name in self._found)

    def vector(self, kind: str) -> Vector:
        """Return what this rank holds of it; raises CorruptArtifactError where it isn't there."""
        prefix = f"{kind}."
        names = sorted(name for name in self._found if name.startswith(prefix))
        shapes = {name.removeprefix(prefix): self._found.shape(name) for name in names}
        if FlatLayout.of_shapes(shapes) != self._held.layout:
            raise CorruptArtifactError(f"an island's checkpoint has no {kind} of this model")
        return self._held.read(_Renamed(self._found, prefix))


class _Renamed(Mapping[str, NDArray[np.float32]]):
    """Stored tensors of one kind, by the names of weights."""

    def __init__(self, found: StoredTensors, prefix: str) -> None:
        self._found, self._prefix = found, prefix

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        return self._found[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        names = (name for name in self._found if name.startswith(self._prefix))
        return (name.removeprefix(self._prefix) for name in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
