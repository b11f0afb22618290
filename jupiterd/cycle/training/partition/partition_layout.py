"""Where each number of a model lies, once its tensors are cut over ranks.

Owns units, their flat order, and which pieces of tensors a rank holds. Pure. Doesn't know engines:
all of them follow this layout, so a state that one has cut another continues.

A unit is what is exchanged together: one layer, or all that is outside of layers. Its tensors, in
the order in which the model has them, stand one after the other as one flat vector, which is cut
once for each rank, wherever that falls. So a rank holds a stretch without gaps of each unit.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Shapes = Mapping[str, Sequence[int]]

OUTSIDE: Final = -1
"""The number of the unit that holds embeddings, the last norm and the output layer."""

ALIGNED_NUMBERS: Final = 16
"""Cuts fall on multiples of it: 64 bytes of fp32, a line of every cache."""

_LAYER: Final = re.compile(r"\b(?:layers|h|blocks)\.(\d+)\.")


@dataclass(frozen=True)
class Piece:
    """A stretch of one tensor, flattened in row-major order."""

    name: str
    """Of the tensor."""
    start: int
    """Its first number, within the tensor."""
    end: int
    """One behind its last number."""
    offset: int
    """Of its first number, within the unit."""


@dataclass(frozen=True)
class Unit:
    """Tensors that are exchanged together."""

    layer: int
    """From 0; OUTSIDE: they belong to none."""
    sizes: Mapping[str, int]
    """Name of a tensor -> how many numbers it has, in their order."""

    @property
    def size(self) -> int:
        """Return how many numbers it has."""
        return sum(self.sizes.values())

    def bounds(self, parts: Sequence[int]) -> tuple[int, ...]:
        """Return where each rank's stretch begins, and the end of the last: [ranks + 1].

        parts: how much each rank holds, compared with the others
        """
        total, size = sum(parts), self.size
        ends = (size * sum(parts[: rank + 1]) // total for rank in range(len(parts) - 1))
        return (0, *(end // ALIGNED_NUMBERS * ALIGNED_NUMBERS for end in ends), size)

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """Yield the pieces of tensors in a stretch of the unit."""
        offset = 0
        for name, size in self.sizes.items():
            first, last = max(start, offset), min(end, offset + size)
            if first < last:
                yield Piece(name, first - offset, last - offset, first)
            offset += size


def units_of(shapes: Shapes) -> tuple[Unit, ...]:
    """Return the units of a model: what is outside of layers, then layer by layer.

    shapes: name -> shape of each tensor that is trained, by Hugging Face's names
    """
    grouped: dict[int, dict[str, int]] = {}
    for name, shape in shapes.items():
        grouped.setdefault(layer_of(name), {})[name] = math.prod(shape)
    return tuple(Unit(layer, grouped[layer]) for layer in sorted(grouped))


def layer_of(name: str) -> int:
    """Return the layer that a tensor belongs to; OUTSIDE: to none."""
    found = _LAYER.search(name)
    return int(found[1]) if found else OUTSIDE
