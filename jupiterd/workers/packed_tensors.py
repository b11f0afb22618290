"""Tensors of a folder that mlx-lm has quantized: as they are packed, and as the numbers they mean.

Owns unpacking (affine: each number is its group's scale times a few bits, plus its group's bias).
Doesn't know engines; `cycle.training.adapters.given_quantized` says which folders these are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.given_quantized import BIASES, SCALES, WEIGHT, GivenBits
from jupiterd.workers.tensor_file import StoredTensors
from jupiterd.workers.training_engine import Tensors

_FOUR, _LOW = 4, 15


@dataclass(frozen=True)
class Packed:
    """One matrix as its file has it."""

    words: NDArray[np.uint32]
    """[rows, columns x bits / 32], the first number in the lowest bits."""
    scales: NDArray[np.float32]
    biases: NDArray[np.float32]
    """[rows, columns / group] both."""
    kept: GivenBits

    def whole(self) -> NDArray[np.float32]:
        """Return the numbers, [rows, columns]."""
        parts = np.ascontiguousarray(self.words, dtype="<u4").view(np.uint8)
        if self.kept.bits == _FOUR:
            parts = np.stack((parts & _LOW, parts >> _FOUR), axis=-1)
        groups = parts.reshape(*self.scales.shape, self.kept.group).astype(np.float32)
        found = groups * self.scales[..., None] + self.biases[..., None]
        return found.reshape(self.words.shape[0], -1)


class PackedTensors(Mapping[str, NDArray[np.float32]]):
    """A folder's weights as the numbers that they mean, each unpacked when it is asked for."""

    def __init__(self, stored: StoredTensors, kept: GivenBits) -> None:
        self._stored, self._kept = stored, kept
        self._shapes = kept.whole_shapes({name: stored.shape(name) for name in stored})

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        packed = self.packed(name)
        return self._stored[name] if packed is None else packed.whole()

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, without reading it."""
        return self._shapes[name]

    def packed(self, name: str) -> Packed | None:
        """Return a matrix as it is packed; None: it isn't."""
        path = name.removesuffix(WEIGHT)
        if f"{path}{SCALES}" not in self._stored:
            return None
        scales, biases = (self._stored[f"{path}{part}"] for part in (SCALES, BIASES))
        return Packed(self._stored.words(name), scales, biases, self._kept)


def packed_of(weights: Tensors, name: str) -> Packed | None:
    """Return one of a model's matrices as its folder packs it; None: it doesn't."""
    find = getattr(weights, "packed", None)
    return None if find is None else find(name)
