"""The stretch of each unit that a rank holds, and the way between it and tensors of MLX.

Owns taking apart and putting together. Doesn't know where the numbers come from, nor other ranks.
A piece is what of a tensor lies in the rank's stretch. It has as many dimensions as the tensor, all
of one but the last, since weight decay goes by their number.
"""

import math
from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_layout import OUTSIDE, Unit, units_of

Shapes = Mapping[str, tuple[int, ...]]


class HeldStretches:
    """What of each unit of a model one rank holds."""

    def __init__(self, shapes: Shapes, partition: Partition, rank: int) -> None:
        """shapes: of all tensors, whole, by transformers' names."""
        self.shapes, self._rank = shapes, rank
        self.units = units_of(shapes)
        self.bounds: dict[int, tuple[int, ...]] = {}
        """By a unit's layer: where each rank's stretch begins in it, and the end of the last."""
        self.cuts: dict[str, tuple[int, ...]] = {}
        """By a tensor's name: the same within the tensor."""
        for unit in self.units:
            self._add(unit, unit.bounds(partition.parts))

    def _add(self, unit: Unit, bounds: tuple[int, ...]) -> None:
        self.bounds[unit.layer], offset = bounds, 0
        for name, size in unit.sizes.items():
            self.cuts[name] = tuple(min(max(at - offset, 0), size) for at in bounds)
            offset += size

    @property
    def outside(self) -> Unit:
        """Return the unit that holds what is outside of layers."""
        return next(unit for unit in self.units if unit.layer == OUTSIDE)

    def holds(self, name: str) -> bool:
        """Say whether the rank has anything of a tensor."""
        cuts = self.cuts[name]
        return cuts[self._rank] < cuts[self._rank + 1]

    def place(self, name: str) -> tuple[int, int]:
        """Return where the rank's piece begins in a flattened tensor, and where it ends."""
        start, end = self.cuts[name][self._rank : self._rank + 2]
        return start, end

    def piece(self, name: str, values: Any) -> Any:  # noqa: ANN401 - an array of numpy or MLX
        """Return what the rank has of a whole tensor, as a view."""
        start, end = self.cuts[name][self._rank : self._rank + 2]
        return values.reshape(-1)[start:end].reshape(self._piece_shape(name, end - start))

    def given(self, name: str, numbers: NDArray[np.float32]) -> mx.array:
        """Return a piece of these numbers."""
        return mx.array(numbers.reshape(self._piece_shape(name, len(numbers))))

    def none_of(self, name: str) -> mx.array:
        """Return a piece of zeros."""
        start, end = self.cuts[name][self._rank : self._rank + 2]
        return mx.zeros(self._piece_shape(name, end - start))

    def pieces(self, unit: Unit, stretch: mx.array) -> dict[str, mx.array]:
        """Return the pieces in the rank's stretch of a unit, as views."""
        found: dict[str, mx.array] = {}
        offset = 0
        for name in filter(self.holds, unit.sizes):
            start, end = self.cuts[name][self._rank : self._rank + 2]
            size = end - start
            found[name] = stretch[offset : offset + size].reshape(self._piece_shape(name, size))
            offset += size
        return found

    def stretch(self, unit: Unit, pieces: Mapping[str, mx.array]) -> mx.array:
        """Return the rank's stretch of a unit, computed, out of its pieces."""
        return _joined([pieces[name] for name in filter(self.holds, unit.sizes)])

    def tensors(self, unit: Unit, whole: mx.array) -> dict[str, mx.array]:
        """Return the whole tensors of a unit, as views."""
        found: dict[str, mx.array] = {}
        offset = 0
        for name, size in unit.sizes.items():
            found[name] = whole[offset : offset + size].reshape(self.shapes[name])
            offset += size
        return found

    def whole(self, unit: Unit, tensors: dict[str, mx.array]) -> mx.array:
        """Take a unit's tensors out of the mapping, and return them as one vector, computed."""
        return _joined([tensors.pop(name) for name in unit.sizes])

    def _piece_shape(self, name: str, size: int) -> tuple[int, ...]:
        return (*(1 for _ in self.shapes[name][1:]), size)


def square_sum(pieces: Mapping[str, mx.array]) -> float:
    """Return the sum of all squares, in float64.

    Summed in rows, and the rows in float64: MLX adds up half a million squares in one go with an
    error of a ten-thousandth.
    """
    sums: list[mx.array] = []
    for values in pieces.values():
        rows = values.size // _ROW * _ROW
        squares = mx.square(values.reshape(-1))
        sums += [squares[:rows].reshape(-1, _ROW).sum(axis=-1), squares[rows:].sum(keepdims=True)]
    mx.eval(sums)
    return math.fsum(float(np.array(each).sum(dtype=np.float64)) for each in sums)


_ROW = 1024


def _joined(arrays: list[mx.array]) -> mx.array:
    flat = [array.reshape(-1) for array in arrays]
    found = mx.concatenate(flat) if flat else mx.zeros((0,))
    mx.eval(found)
    return found
