"""The first weights of a model: numbers that follow from the seed, on every engine alike.

Owns how they are drawn. Doesn't know models or engines: it is told names and shapes. Each tensor is
drawn when it is asked for, so that nobody needs memory for all of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

_FIRST_FACTOR, _SECOND_FACTOR = ".lora_A.weight", ".lora_B.weight"

INIT_STD = 0.02
"""Spread of the first weights; norms begin as ones, biases as zeros."""


class FirstWeights(Mapping[str, NDArray[np.float32]]):
    """Weights by name; each is drawn anew whenever it is asked for."""

    def __init__(self, shapes: Mapping[str, Sequence[int]], seed: int) -> None:
        self._shapes, self._seed = shapes, seed

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Return a tensor in float32."""
        return _drawn(name, self._shapes[name], self._seed)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._shapes)

    def __len__(self) -> int:
        """Return how many tensors there are."""
        return len(self._shapes)


def first_weights(shapes: Mapping[str, Sequence[int]], seed: int) -> FirstWeights:
    """Return float32 weights by name; each depends on the seed, its own name and shape alone."""
    return FirstWeights(shapes, seed)


def _drawn(name: str, shape: Sequence[int], seed: int) -> NDArray[np.float32]:
    if name.endswith((".bias", _SECOND_FACTOR)):
        return np.zeros(shape, dtype=np.float32)
    if len(shape) < 2:
        return np.ones(shape, dtype=np.float32)
    key = int.from_bytes(blake3(f"{seed}/{name}".encode()).digest(16), "big")
    chance = np.random.Generator(np.random.PCG64(key))
    if name.endswith(_FIRST_FACTOR):
        # As peft and mlx-lm draw them: evenly between plus and minus one over the root of inputs.
        evenly = chance.random(tuple(shape), dtype=np.float32)
        return (evenly * 2 - 1) * np.float32(1 / math.sqrt(shape[-1]))
    return chance.standard_normal(tuple(shape), dtype=np.float32) * np.float32(INIT_STD)
