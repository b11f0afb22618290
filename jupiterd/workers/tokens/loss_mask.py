"""Which tokens of a stream the loss counts: one bit each, in a file beside the shards.

Owns that file, both ways. Doesn't know tokens, or why some don't count. Where there is no such file
all of them do.
"""

import mmap
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jupiterd.errors import CorruptArtifactError

MASK_FILE: Final = "loss_mask.bits"


class LossMaskWriter:
    """Appends bits to a new file; the lowest bit of a byte comes first."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / MASK_FILE
        self._path.unlink(missing_ok=True)
        self._rest = np.zeros(0, dtype=np.bool_)
        self.counted = 0
        self.is_empty = True

    def append(self, counted: NDArray[np.bool_]) -> None:
        """Add tokens to the end."""
        self.is_empty = False
        self.counted += int(counted.sum())
        bits = np.concatenate((self._rest, counted))
        whole = len(bits) // 8 * 8
        self._write(bits[:whole])
        self._rest = bits[whole:]

    def finish(self) -> None:
        """Write what doesn't fill a byte."""
        self._write(self._rest)
        self._rest = self._rest[:0]

    def _write(self, bits: NDArray[np.bool_]) -> None:
        with self._path.open("ab") as file:
            file.write(np.packbits(bits, bitorder="little").tobytes())


class LossMask:
    """Reads them, through a memory map."""

    def __init__(self, folder: Path, tokens: int) -> None:
        """Open the file of a stream of so many tokens.

        Raises:
            CorruptArtifactError: it isn't as long as it should be.
        """
        try:
            with (folder / MASK_FILE).open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CorruptArtifactError(f"{MASK_FILE} can't be read") from error
        self._bytes = np.frombuffer(mapped, dtype=np.uint8)
        if len(self._bytes) != -(-tokens // 8):
            raise CorruptArtifactError(f"{MASK_FILE} isn't of {tokens} tokens")

    def at(self, firsts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
        """Return whether tokens count, [places, length]: so many of them from each place on."""
        found = np.empty((len(firsts), length), dtype=np.bool_)
        for row, first in zip(found, firsts.tolist(), strict=True):
            some = self._bytes[first // 8 : -(-(first + length) // 8)]
            row[:] = np.unpackbits(some, bitorder="little")[first % 8 : first % 8 + length]
        return found
