"""What of the flat vector of all weights one rank of an island holds: all of it.

Owns the interface to that (`cut_vector` implements it where a model is cut over the ranks), and how
a rank that holds everything answers. Doesn't know rounds. A *vector* is what the rank holds of the
flat vector of all weights (`flat`); a *part* is a slice of that flat vector.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from jupiterd.workers.islands.compression import Compressor, Packed
from jupiterd.workers.islands.flat import FlatLayout, Vector
from jupiterd.workers.islands.outer_step import OuterState
from jupiterd.workers.islands.pseudo_gradient_file import write_pseudo_gradient
from jupiterd.workers.training_engine import TensorPiece, Tensors, TrainingEngine

Shapes = Mapping[str, tuple[int, ...]]


class Unsent(Protocol):
    """A packed pseudo-gradient, of which nothing is in its file yet, or not all."""

    def write(self, folder: Path) -> None:
        """Make its folder, beside all else."""
        ...


class HeldVector(Protocol):
    """The way between an engine and vectors; where `is_cut`, all ranks call the same."""

    is_cut: bool
    layout: FlatLayout
    """Of all weights."""
    size: int
    """Of a vector."""

    def taken(self) -> Vector:
        """Return the engine's weights, a copy."""
        ...

    def load(self, vector: Vector) -> None:
        """Give the engine these weights."""
        ...

    def read(self, tensors: Tensors) -> Vector:
        """Return what is held of tensors, each of which is asked for once."""
        ...

    def pieces(self, vector: Vector) -> Iterator[TensorPiece]:
        """Yield a vector by tensors, as views."""
        ...

    def inside(self, part: slice) -> Iterable[tuple[slice, slice]]:
        """Yield where numbers of a part lie in a vector, and where in the part."""
        ...

    def all_are_numbers(self, vector: Vector) -> bool:
        """Say whether all of it is finite, on all ranks."""
        ...

    def length(self, vector: Vector) -> float:
        """Return the L2 norm of the flat vector; infinite where one of its numbers is none."""
        ...

    def digest(self, state: OuterState) -> bytes:
        """Return BLAKE3 of what must be the same on all islands, whole."""
        ...

    def packed(self, compressor: Compressor, vector: Vector, scratch: Path) -> Unsent:
        """Return a pseudo-gradient packed, and note what is left of it.

        scratch: a path for a file, which nobody else uses
        """
        ...

    def logits_weights(self, vector: Vector) -> Tensors | None:
        """Return what logits are computed with; None: with what the engine has been given."""
        ...


class WholeVector:
    """That of a rank which holds everything."""

    is_cut = False

    def __init__(self, engine: TrainingEngine) -> None:
        self._engine = engine
        self.layout = FlatLayout.of(engine.exact_weights())
        self.size = self.layout.size

    def taken(self) -> Vector:
        """Return the engine's weights, a copy."""
        return self.layout.flat(self._engine.exact_weights())

    def load(self, vector: Vector) -> None:
        """Give the engine these weights."""
        self._engine.load_exact(self.layout.tensors(vector))

    def read(self, tensors: Tensors) -> Vector:
        """Return the tensors as one vector."""
        return self.layout.flat(tensors)

    def pieces(self, vector: Vector) -> Iterator[TensorPiece]:
        """Yield the tensors, flattened."""
        for name, values in self.layout.tensors(vector).items():
            yield TensorPiece(name, 0, values.ravel())

    def inside(self, part: slice) -> Iterable[tuple[slice, slice]]:
        """Yield the part: it lies where it is."""
        yield part, slice(None)

    def all_are_numbers(self, vector: Vector) -> bool:
        """Say whether all of it is finite."""
        return are_numbers(vector)

    def length(self, vector: Vector) -> float:
        """Return its L2 norm."""
        return length(vector)

    def digest(self, state: OuterState) -> bytes:
        """Return BLAKE3 of a state."""
        return state.digest()

    def packed(self, compressor: Compressor, vector: Vector, scratch: Path) -> Unsent:  # noqa: ARG002 - it stays in memory
        """Return a pseudo-gradient packed, and note what is left of it."""
        return InMemory(compressor.packed(vector))

    def logits_weights(self, vector: Vector) -> Tensors | None:
        """Return the tensors, as views."""
        return self.layout.tensors(vector)


class InMemory:
    """A packed pseudo-gradient in memory."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed

    def write(self, folder: Path) -> None:
        """Make its folder."""
        write_pseudo_gradient(folder, self._packed)


def are_numbers(vector: Vector) -> bool:
    """Say whether all of it is finite."""
    return bool(np.isfinite(vector.sum(dtype=np.float64)))


def length(vector: Vector) -> float:
    """Return a vector's L2 norm; infinite where one of its numbers is none."""
    norm = float(np.linalg.norm(vector))
    return norm if np.isfinite(norm) else float("inf")
