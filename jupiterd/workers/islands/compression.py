"""How an island's pseudo-gradient is packed for the wire, and that nothing of it is lost for good.

Owns the kinds: int8 in blocks, bf16, and fp32 as it is; and the error feedback. Doesn't know what
the numbers are.

What packing lost is added to what is packed next (error feedback: Seide et al., 2014).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.islands import int8_blocks
from jupiterd.workers.islands.flat import Vector, chunks_of

Kind = Literal["int8", "bf16", "fp32"]


class Packed(Protocol):
    """A packed vector."""

    @property
    def size_bytes(self) -> int:
        """Return how much of it goes over the wire."""
        ...

    def chunks(self) -> Iterator[tuple[slice, Vector]]:
        """Yield the numbers, the same on every machine, and where they stand."""
        ...


@dataclass(frozen=True)
class Halves:
    """A vector in bf16: the upper halves of its numbers."""

    halves: NDArray[np.uint16]

    @property
    def size_bytes(self) -> int:
        """Return how much of it goes over the wire."""
        return self.halves.nbytes

    def chunks(self) -> Iterator[tuple[slice, Vector]]:
        """Yield the numbers, the same on every machine, and where they stand."""
        for part in chunks_of(len(self.halves)):
            yield part, (self.halves[part].astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Whole:
    """A vector as it is."""

    numbers: Vector

    @property
    def size_bytes(self) -> int:
        """Return how much of it goes over the wire."""
        return self.numbers.nbytes

    def chunks(self) -> Iterator[tuple[slice, Vector]]:
        """Yield the numbers, the same on every machine, and where they stand."""
        for part in chunks_of(len(self.numbers)):
            yield part, self.numbers[part]


def halves(numbers: Vector) -> Halves:
    """Return the numbers in bf16, rounded to nearest, ties to even; they must be finite."""
    found = Halves(np.empty(len(numbers), np.uint16))
    for part in chunks_of(len(numbers)):
        bits = np.ascontiguousarray(numbers[part]).view(np.uint32)
        found.halves[part] = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return found


PACKERS: Mapping[Kind, Callable[[Vector], Packed]] = {
    "int8": int8_blocks.rounded,
    "bf16": halves,
    "fp32": lambda numbers: Whole(numbers.copy()),
}


class Compressor:
    """Packs vector after vector of one length; what those that count have lost goes with the next.

    residual: what hasn't been sent yet, of what was packed elsewhere
    """

    def __init__(self, size: int, kind: Kind = "int8", residual: Vector | None = None) -> None:
        self.kind: Kind = kind
        self.form = PACKERS[kind]
        """Packs numbers, without what was left before."""
        self._nothing = np.zeros(size, np.float32)
        self.residual: Vector = self._nothing if residual is None else residual
        """What hasn't been sent yet; part of what a checkpoint needs."""
        self.left: Vector | None = None
        """The same, if what was packed last counts; None where all is known."""

    def packed(self, numbers: Vector) -> Packed:
        """Return the numbers and what is left of those before; nothing has changed by it yet.

        numbers: what packing loses of them is left where they stood
        """
        numbers += self.residual
        sent = self.form(numbers)
        for part, some in sent.chunks():
            numbers[part] -= some
        self.left = numbers
        return sent

    def ended(self, *, is_counted: bool) -> None:
        """Take in whether what was packed counts.

        Where another process has packed it, nothing is known to be left of it.
        """
        if is_counted:
            self.residual = self._nothing if self.left is None else self.left
        self.left = None
