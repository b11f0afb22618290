"""The tensors of an adapter, and what they make of the matrices of its base.

Owns reading the folder, ours or that of others. Doesn't know engines: what is changed is told by
the module's path.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jupiterd.adapter_folder import ADAPTER_CONFIG, adapter_file, said_in
from jupiterd.cycle.training.adapters.adapter import (
    FACTORS,
    MAGNITUDE,
    AdapterOptions,
    module_of,
    tensor_name,
)
from jupiterd.cycle.training.adapters.adapter_files import FoundTensor, read_adapter
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.tensor_file import load_tensors
from jupiterd.workers.training_engine import Tensors

SMALLEST_SQUARE = 1e-30
"""Of a row's length: rows of zeros stay what they are."""


@dataclass(frozen=True)
class MatrixChange:
    """What an adapter makes of one matrix."""

    added: NDArray[np.float32]
    """[outputs, inputs]."""
    magnitude: NDArray[np.float32] | None
    """[outputs]: how long the rows of the sum are then, of DoRA."""

    def of(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what becomes of a matrix, [outputs, inputs]."""
        total = matrix + self.added
        if self.magnitude is None:
            return total
        squares = np.einsum("ij,ij->i", total, total, dtype=np.float64, casting="safe")
        lengths = np.sqrt(np.maximum(squares, SMALLEST_SQUARE))
        total *= (self.magnitude / lengths).astype(np.float32)[:, None]
        return total


class AdapterTensors:
    """Those of one adapter."""

    def __init__(self, folder: Path) -> None:
        """Read them; raises CorruptArtifactError where they can't be used."""
        said, file = said_in(folder), adapter_file(folder)
        if said is None:
            raise CorruptArtifactError(f"{ADAPTER_CONFIG} of {folder.name} can't be read")
        held = load_tensors(file)
        try:
            found = read_adapter(said, {name: values.shape for name, values in held.items()})
        except UsageError as error:
            reason = f"the adapter {folder.name} can't be used: {error.message}"
            raise CorruptArtifactError(reason, error.hint) from error
        self.options: AdapterOptions = found.options
        self.tensors: Tensors = {
            name: _as_here(held, tensor) for name, tensor in found.tensors.items()
        }
        """By the names that peft has for them, and as it has them."""
        self.modules = tuple(dict.fromkeys(module_of(name)[0] for name in self.tensors))
        """The paths of the modules that have one."""

    @property
    def rank(self) -> int:
        """Return the rank that all of them have."""
        return self.options.rank

    @property
    def scale(self) -> float:
        """Return by what the product of both factors is multiplied."""
        return self.options.scale

    def changes(self) -> Iterator[tuple[str, MatrixChange]]:
        """Yield each module with what becomes of its matrix."""
        for module, first, second in self.factors():
            added = (second @ first) * np.float32(self.scale)
            yield module, MatrixChange(added, self.magnitude(module))

    def magnitude(self, module: str) -> NDArray[np.float32] | None:
        """Return a module's magnitude, [outputs]; None: the adapter isn't DoRA."""
        return self.tensors.get(tensor_name(module, MAGNITUDE))

    def factors(self) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.float32]]]:
        """Yield each module with its factors, [rank, inputs] and [outputs, rank]."""
        for module in self.modules:
            first, second = (self.tensors[tensor_name(module, factor)] for factor in FACTORS)
            yield module, first, second


def _as_here(held: Tensors, tensor: FoundTensor) -> NDArray[np.float32]:
    values = held[tensor.name]
    return np.ascontiguousarray(values.T) if tensor.is_turned else values
