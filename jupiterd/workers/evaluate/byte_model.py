"""The order-2 byte model: what a language model must beat to be worth anything.

Owns counting and scoring. Doesn't know tokens, documents' origins, or who is compared with it.

The chance of a byte after two others is interpolated after Witten & Bell (IEEE Transactions on
Information Theory, 1991) down to order 0: with n(h) bytes seen after the history h, T(h) different
ones among them, and the shorter history h',

    p(c | h) = (n(hc) + T(h) p(c | h')) / (n(h) + T(h)),    p(c | nothing shorter) = 1 / 256

A document begins after two zero bytes, which are never themselves predicted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BEGIN = np.zeros(2, dtype=np.uint32)
_FLUSH_BYTES = 1 << 24
"""Keys are counted 16 MiB of text at a time, which bounds memory at about 0.4 GB."""


@dataclass(frozen=True)
class ByteModel:
    """Counts of one, two and three bytes, as float64 of shapes [256], [65536], [16777216]."""

    ones: NDArray[np.float64]
    twos: NDArray[np.float64]
    threes: NDArray[np.uint32]
    kinds_after_none: float
    kinds_after_one: NDArray[np.float64]
    """Shape [256]: how many different bytes follow each byte."""
    kinds_after_two: NDArray[np.float64]
    """Shape [65536]: how many different bytes follow each pair."""
    after_two: NDArray[np.float64]
    """Shape [65536]: how many bytes follow each pair."""
    after_one: NDArray[np.float64]
    """Shape [256]: how many bytes follow each byte."""

    def nats(self, text: bytes) -> float:
        """Return -log probability of the whole text, each byte after those before it."""
        if not text:
            return 0.0
        three = _keys(text)
        two = three & 0xFFFF
        one = two & 0xFF
        p0 = (self.ones[one] + self.kinds_after_none / 256) / (
            self.ones.sum() + self.kinds_after_none
        )
        p1 = _interpolated(
            self.twos[two], self.after_one[two >> 8], self.kinds_after_one[two >> 8], p0
        )
        p2 = _interpolated(
            self.threes[three], self.after_two[three >> 8], self.kinds_after_two[three >> 8], p1
        )
        return float(-np.log(p2).sum())


def count_bytes(texts: Iterable[bytes]) -> ByteModel:
    """Return the model of these texts; at least one byte is needed to say anything."""
    threes = np.zeros(1 << 24, dtype=np.uint32)
    for keys in _key_batches(texts):
        threes += np.bincount(keys, minlength=1 << 24).astype(np.uint32)
    by_history = threes.reshape(1 << 16, 256)
    # Summing over the first byte of the history leaves the counts of (previous byte, byte).
    twos = threes.reshape(256, 1 << 16).sum(axis=0, dtype=np.float64)
    by_byte = twos.reshape(256, 256)
    ones = by_byte.sum(axis=0)
    return ByteModel(
        ones=ones,
        twos=twos,
        threes=threes,
        kinds_after_none=max(1.0, float(np.count_nonzero(ones))),
        kinds_after_one=np.count_nonzero(by_byte, axis=1).astype(np.float64),
        kinds_after_two=np.count_nonzero(by_history, axis=1).astype(np.float64),
        after_two=by_history.sum(axis=1, dtype=np.float64),
        after_one=by_byte.sum(axis=1),
    )


def _interpolated(
    count: NDArray[np.float64] | NDArray[np.uint32],
    after: NDArray[np.float64],
    kinds: NDArray[np.float64],
    shorter: NDArray[np.float64],
) -> NDArray[np.float64]:
    # A history never seen says nothing: with one imaginary kind the formula gives `shorter`.
    weight = np.maximum(kinds, 1.0)
    return (count + weight * shorter) / (after + weight)


def _keys(text: bytes) -> NDArray[np.uint32]:
    """Return for each byte the three bytes that end with it, as one number; shape [len(text)]."""
    padded = np.concatenate([_BEGIN, np.frombuffer(text, dtype=np.uint8).astype(np.uint32)])
    keys: NDArray[np.uint32] = (padded[:-2] * 65536 + padded[1:-1] * 256 + padded[2:]).astype(
        np.uint32, copy=False
    )
    return keys


def _key_batches(texts: Iterable[bytes]) -> Iterable[NDArray[np.uint32]]:
    batch: list[NDArray[np.uint32]] = []
    size_bytes = 0
    for text in texts:
        batch.append(_keys(text))
        size_bytes += len(text)
        if size_bytes >= _FLUSH_BYTES:
            yield np.concatenate(batch)
            batch, size_bytes = [], 0
    if batch:
        yield np.concatenate(batch)
