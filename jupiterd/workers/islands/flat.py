"""All weights of a model as one vector, the same on every island.

Owns the order: by name, each in its own C order. Doesn't know what is done with the vector.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from jupiterd.errors import Bug
from jupiterd.workers.training_engine import Tensors

Vector = NDArray[np.float32]
"""[parameters]."""

CHUNK = 1 << 16
"""Numbers that are worked on at a time: they stay in the processor's cache, and vectors as long as
the model's are made as seldom as can be, for each costs as much as all that is computed."""


def chunks_of(size: int) -> Iterator[slice]:
    """Yield the chunks of a vector of that length."""
    return slices_of(size, CHUNK)


def slices_of(size: int, length: int) -> Iterator[slice]:
    """Yield slices of a vector, of that length but for the last."""
    for start in range(0, size, length):
        yield slice(start, min(size, start + length))


@dataclass(frozen=True)
class FlatLayout:
    """Where each tensor lies in the vector."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    """Name and shape, by name."""

    @classmethod
    def of(cls, tensors: Tensors) -> "FlatLayout":
        """Return the layout of a model with these tensors."""
        return cls(tuple((name, tensors[name].shape) for name in sorted(tensors)))

    @classmethod
    def of_shapes(cls, shapes: Mapping[str, tuple[int, ...]]) -> "FlatLayout":
        """Return the layout of a model whose tensors have these shapes."""
        return cls(tuple((name, tuple(shapes[name])) for name in sorted(shapes)))

    @property
    def starts(self) -> Mapping[str, int]:
        """Return where each tensor begins."""
        sizes = (int(np.prod(shape)) for _, shape in self.shapes)
        places = (0, *accumulate(sizes))
        return {name: place for (name, _), place in zip(self.shapes, places, strict=False)}

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return sum(int(np.prod(shape)) for _, shape in self.shapes)

    def flat(self, tensors: Tensors) -> Vector:
        """Return the tensors as one vector, a copy.

        Raises:
            Bug: they are those of another model.
        """
        if FlatLayout.of(tensors) != self:
            raise Bug("the tensors are those of another model")
        parts = [np.asarray(tensors[name], np.float32).ravel() for name, _ in self.shapes]
        return np.concatenate(parts)

    def tensors(self, vector: Vector) -> dict[str, NDArray[np.float32]]:
        """Return the vector as tensors, which are views of it."""
        found: dict[str, NDArray[np.float32]] = {}
        start = 0
        for name, shape in self.shapes:
            stop = start + int(np.prod(shape))
            found[name] = vector[start:stop].reshape(shape)
            start = stop
        return found
