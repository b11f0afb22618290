"""Which inputs a dropout leaves out: a function of what is trained on, not of who computes it.

Owns the numbers that both engines compute it from. An input of token t and column c is kept where

    key[t] * factor[c] + addend[c] >= threshold        all of them uint32, modulo 2**32

a hash that is universal (Dietzfelbinger 1996): one product, one sum and one comparison, exact on
every device. A token's key follows from the run's seed and from where its sequence stands in the
order of training, so whatever rank, share, micro batch or engine it falls to, and however often a
layer is computed again, the same inputs are left out; another step or pass has other keys. Factors
and addends follow from the module's name.
"""

from dataclasses import dataclass

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

Words = NDArray[np.uint32]

_GAMMA, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
"""Of splitmix64 (Steele, Lea and Flood 2014)."""


@dataclass(frozen=True)
class MaskColumns:
    """What a module's inputs are told apart by; each array is uint32[inputs]."""

    factors: Words
    """Odd, so that each is as likely as any other to be kept."""
    addends: Words


def token_keys(seed: str, positions: NDArray[np.int64], tokens: int) -> Words:
    """Return the keys of sequences, uint32[sequences, tokens].

    seed: of the run and its round; positions: of the sequences in the order of training
    """
    first = positions.astype(np.uint64)[:, None] * np.uint64(tokens)
    return _hashed(first + np.arange(tokens, dtype=np.uint64), seed)


def mask_columns(module: str, inputs: int) -> MaskColumns:
    """Return a module's columns; module: its path as transformers has it."""
    words = _hashed(np.arange(2 * inputs, dtype=np.uint64), module)
    return MaskColumns(words[:inputs] | np.uint32(1), words[inputs:])


def threshold_of(share: float) -> int:
    """Return the threshold below which a number is left out, so that this share of all is."""
    return round(share * 2**32)


def _hashed(counters: NDArray[np.uint64], key: str) -> Words:
    """Return the upper half of splitmix64 at these places of a stream."""
    begin = np.uint64(int.from_bytes(blake3(key.encode()).digest(8), "little"))
    values = begin + (counters + np.uint64(1)) * _GAMMA
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return ((values ^ (values >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)
