"""The first weights of a model: numbers that follow from the seed, on every engine alike.

Owns how they are drawn. Doesn't know models or engines: it is told names and shapes.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

_FIRST_FACTOR, _SECOND_FACTOR = ".lora_A.weight", ".lora_B.weight"

INIT_STD = 0.02
"""Spread of the first weights; norms begin as ones, biases as zeros."""


def first_weights(shapes: Mapping[str, Sequence[int]], seed: int) -> dict[str, NDArray[np.float32]]:
    """Return float32 weights by name; each depends on the seed, its own name and shape alone."""
    return {name: _drawn(name, shape, seed) for name, shape in shapes.items()}


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
