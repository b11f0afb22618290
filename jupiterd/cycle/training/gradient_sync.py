"""Whether the ranks of a gang still hold the same weights.

Owns the fingerprint's form and the verdict. Doesn't know how weights are hashed or exchanged.

Ranks of one platform compute alike to the last bit, so their hashes must be equal. Another platform
rounds differently, so across platforms only the lengths of the tensors are compared.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from blake3 import blake3

LENGTHS = 16
"""Numbers that sum the weights up, for ranks that can't compare bits."""

TOLERANCE = 1e-3
"""Relative difference of a length, between platforms, above which weights are not the same."""

_DIGITS = 3
"""16-bit digits of a hash: 48 bits, each digit exact in the float32 that travels."""


@dataclass(frozen=True)
class Fingerprint:
    """What one rank tells of its weights."""

    platform: tuple[int, ...]
    """Hash of what it computes on; equal ones compute alike to the last bit."""
    bits: tuple[int, ...]
    """Hash of the weights."""
    lengths: tuple[float, ...]

    @classmethod
    def of(cls, platform: str, weights_hash: bytes, lengths: Sequence[float]) -> Self:
        """Return the fingerprint of weights that were hashed and measured."""
        return cls(digits(platform.encode()), digits(weights_hash), tuple(lengths))

    def to_numbers(self) -> list[float]:
        """Return it as numbers that float32 carries exactly, the lengths nearly."""
        return [*map(float, self.platform), *map(float, self.bits), *self.lengths]

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Self:
        """Rebuild what another rank sent."""
        digits_of = tuple(int(number) for number in numbers[: 2 * _DIGITS])
        return cls(digits_of[:_DIGITS], digits_of[_DIGITS:], tuple(numbers[2 * _DIGITS :]))


def digits(data: bytes) -> tuple[int, ...]:
    """Return the 16-bit digits that stand for the data."""
    hashed = blake3(data).digest(2 * _DIGITS)
    return tuple(int.from_bytes(hashed[at : at + 2], "big") for at in range(0, 2 * _DIGITS, 2))


def diverged(fingerprints: Sequence[Fingerprint]) -> tuple[int, ...]:
    """Return the ranks whose weights are not those of the others; where two differ, the later."""
    usual = {one.platform: _usual(fingerprints, one.platform) for one in fingerprints}
    reference = usual[fingerprints[0].platform]
    return tuple(
        rank
        for rank, one in enumerate(fingerprints)
        if one.bits != usual[one.platform].bits
        or not _alike(usual[one.platform].lengths, reference.lengths)
    )


def _usual(fingerprints: Sequence[Fingerprint], platform: tuple[int, ...]) -> Fingerprint:
    """Return what most ranks of a platform hold, the first one's where as many hold another."""
    same = [one for one in fingerprints if one.platform == platform]
    (bits, _), *_ = Counter(one.bits for one in same).most_common()
    return next(one for one in same if one.bits == bits)


def _alike(some: Sequence[float], others: Sequence[float]) -> bool:
    return all(
        abs(one - other) <= TOLERANCE * max(abs(one), abs(other))
        for one, other in zip(some, others, strict=True)
    )
