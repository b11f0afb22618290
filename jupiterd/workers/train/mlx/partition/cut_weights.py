"""The weights of a model of which a rank updates its own stretches alone.

Owns where they are between steps: whole on every rank, or in stretches. Doesn't know models or
optimizers.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

import mlx.core as mx
import numpy as np

from jupiterd.cycle.training.partition.partition_layout import Unit
from jupiterd.workers.tensor_file import stretch_of
from jupiterd.workers.train.mlx.partition.held_stretches import HeldStretches
from jupiterd.workers.train.mlx.partition.stretch_exchange import StretchExchange
from jupiterd.workers.training_engine import NamedTensor, Tensors


class PartitionedWeights(Protocol):
    """Weights of a model that is cut over ranks; all of them call the same at the same time."""

    arrays: dict[str, mx.array]
    """Whole tensors by name; empty where no rank has them all."""

    def load(self, weights: Tensors) -> None:
        """Replace them; asks for each tensor once."""
        ...

    def of_unit(self, unit: Unit) -> dict[str, mx.array]:
        """Return the whole tensors of a unit."""
        ...

    def held(self) -> dict[str, mx.array]:
        """Return this rank's pieces."""
        ...

    def replace(self, pieces: dict[str, mx.array]) -> None:
        """Take updated pieces."""
        ...

    def each(self) -> Iterator[NamedTensor]:
        """Yield whole tensors one by one."""
        ...


class WholeWeights:
    """Weights that every rank has, and updates a part of."""

    def __init__(self, stretches: HeldStretches, exchange: StretchExchange) -> None:
        self._stretches, self._exchange = stretches, exchange
        self.arrays: dict[str, mx.array] = {}

    def load(self, weights: Tensors) -> None:
        """Replace them."""
        for name in self._stretches.shapes:
            self.arrays[name] = mx.array(weights[name])

    def of_unit(self, unit: Unit) -> dict[str, mx.array]:
        """Return the tensors of a unit."""
        return {name: self.arrays[name] for name in unit.sizes}

    def held(self) -> dict[str, mx.array]:
        """Return this rank's pieces, as views."""
        named = self.arrays.items()
        cut = self._stretches
        return {name: cut.piece(name, values) for name, values in named if cut.holds(name)}

    def replace(self, pieces: dict[str, mx.array]) -> None:
        """Take updated pieces, and those of the other ranks."""
        cut = self._stretches
        for unit in cut.units:
            mine = cut.stretch(unit, pieces)
            for name in unit.sizes:
                pieces.pop(name, None)
            whole = self._exchange.gather(mine, cut.bounds[unit.layer])
            self.arrays |= cut.tensors(unit, whole)

    def each(self) -> Iterator[NamedTensor]:
        """Yield them one by one."""
        for name, values in self.arrays.items():
            yield name, np.array(values)


class CutWeights:
    """Weights of which each rank has its own stretches alone."""

    def __init__(self, stretches: HeldStretches, exchange: StretchExchange) -> None:
        self._stretches, self._exchange = stretches, exchange
        self.arrays: dict[str, mx.array] = {}
        self._pieces: dict[str, mx.array] = {}

    def load(self, weights: Tensors) -> None:
        """Replace them."""
        names = {name: name for name in self._stretches.shapes}
        self._pieces = pieces_of(self._stretches, weights, names)

    def of_unit(self, unit: Unit) -> dict[str, mx.array]:
        """Return the tensors of a unit, gathered of all ranks."""
        cut = self._stretches
        mine = cut.stretch(unit, self._pieces)
        return cut.tensors(unit, self._exchange.gather(mine, cut.bounds[unit.layer]))

    def held(self) -> dict[str, mx.array]:
        """Return this rank's pieces."""
        return self._pieces

    def replace(self, pieces: dict[str, mx.array]) -> None:
        """Take updated pieces."""
        self._pieces = pieces

    def each(self) -> Iterator[NamedTensor]:
        """Yield whole tensors one by one, gathered of all ranks."""
        for name in self._stretches.shapes:
            piece = self._pieces.get(name, self._stretches.none_of(name))
            yield name, gathered(self._stretches, self._exchange, name, piece)


def pieces_of(
    stretches: HeldStretches, tensors: Tensors, names: Mapping[str, str]
) -> dict[str, mx.array]:
    """Return this rank's pieces of tensors, of which no more is read where they lie in files.

    names: what a tensor is called -> the weight that it belongs to
    """
    found: dict[str, mx.array] = {}
    for named, name in names.items():
        if stretches.holds(name):
            values = stretch_of(tensors, named, *stretches.place(name))
            found[named] = mx.array(values).reshape(stretches.none_of(name).shape)
    return found


def gathered(
    stretches: HeldStretches, exchange: StretchExchange, name: str, piece: mx.array
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return a whole tensor out of the pieces of all ranks."""
    flat = piece.reshape(-1)
    mx.eval(flat)
    whole = exchange.gather(flat, stretches.cuts[name])
    return np.array(whole).reshape(stretches.shapes[name])
