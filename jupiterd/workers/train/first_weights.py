"""The first weights of a model: numbers that follow from the seed, on every engine alike.

Owns how they are drawn. Doesn't know models or engines: it is told names and shapes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

INIT_STD = 0.02
"""Spread of the first weights; norms begin as ones, biases as zeros."""


def first_weights(shapes: Mapping[str, Sequence[int]], seed: int) -> dict[str, NDArray[np.float32]]:
    """Return float32 weights by name; each depends on the seed, its own name and shape alone."""
    return {name: _drawn(name, shape, seed) for name, shape in shapes.items()}


def _drawn(name: str, shape: Sequence[int], seed: int) -> NDArray[np.float32]:
    if name.endswith(".bias"):
        return np.zeros(shape, dtype=np.float32)
    if len(shape) < 2:
        return np.ones(shape, dtype=np.float32)
    key = int.from_bytes(blake3(f"{seed}/{name}".encode()).digest(16), "big")
    normal = np.random.Generator(np.random.PCG64(key)).standard_normal
    return normal(tuple(shape), dtype=np.float32) * np.float32(INIT_STD)
