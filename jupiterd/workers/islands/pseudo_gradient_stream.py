"""A pseudo-gradient's folder written and read in parts, where nobody has room for all of it.

Owns that; what is in the folder is as `pseudo_gradient_file` has it, to the last byte once it is
unpacked. Doesn't know who packs what.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from jupiterd.workers.islands.compression import Halves, Kind, Packed, Whole
from jupiterd.workers.islands.flat import Vector, chunks_of
from jupiterd.workers.islands.int8_blocks import Blocks, blocks_of
from jupiterd.workers.islands.pseudo_gradient_file import (
    MOST_HEADER_BYTES,
    PSEUDO_GRADIENT_FILE,
    are_all_numbers,
    misfit,
    packer,
    unreadable,
)

_ARRAYS: Final[Mapping[Kind, Mapping[str, str]]] = {
    "int8": {"scales": "<f4", "levels": "|i1"},
    "bf16": {"halves": "<u2"},
    "fp32": {"numbers": "<f4"},
}
"""Name and type of each array, in the order in which safetensors writes them."""

_FORMS: Final = {"int8": Blocks, "bf16": Halves, "fp32": Whole}
_NAMES: Final = {"<f4": "F32", "|i1": "I8", "<u2": "U16"}
_LENGTH_BYTES: Final = 8


class GrowingPseudoGradient:
    """One that is packed part by part, into a file of its own at first.

    scratch: that file; None: this rank has none, and packs for what is left alone
    """

    def __init__(self, scratch: Path | None, kind: Kind, size: int) -> None:
        self._scratch = scratch
        head, self._places = _head(kind, size)
        self._file: BinaryIO | None = None
        if scratch is not None:
            self._file = scratch.open("wb")
            self._file.write(head)

    def put(self, part: slice, packed: Packed) -> None:
        """Write what a part became, which begins with a block."""
        if self._file is None:
            return
        for name, values in vars(packed).items():
            array: NDArray[Any] = values
            before = blocks_of(part.start) if name == "scales" else part.start
            self._file.seek(self._places[name] + before * array.itemsize)
            self._file.write(array.data)

    def write(self, folder: Path) -> None:
        """Make the folder that travels, of all parts."""
        if self._file is None or self._scratch is None:
            return
        self._file.close()
        folder.mkdir()
        with self._scratch.open("rb") as unpacked, (folder / PSEUDO_GRADIENT_FILE).open("wb") as to:
            packer().copy_stream(unpacked, to)
        self._scratch.unlink()


class StreamedPseudoGradient:
    """One that is read from its folder part by part, as often as it is asked for.

    folder, size: of a model with so many parameters
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._file, self._size = folder / PSEUDO_GRADIENT_FILE, size

    @property
    def size_bytes(self) -> int:
        """Return how much of it went over the wire."""
        return self._file.stat().st_size

    def chunks(self) -> Iterator[tuple[slice, Vector]]:
        """Yield the numbers, and where they stand.

        Raises:
            CorruptArtifactError: the file isn't there or not whole, or holds none of this model.
        """
        try:
            with (
                self._file.open("rb") as file,
                closing(zstandard.ZstdDecompressor().stream_reader(file)) as stream,
            ):
                yield from self._parts(stream)
        except (OSError, ValueError, zstandard.ZstdError) as error:
            raise unreadable(error) from error

    def _parts(self, stream: Any) -> Iterator[tuple[slice, Vector]]:  # noqa: ANN401 - of zstandard
        kind = self._kind(stream)
        scales = _read(stream, "<f4", blocks_of(self._size)) if kind == "int8" else None
        name, form = list(_ARRAYS[kind])[-1], _FORMS[kind]
        for part in chunks_of(self._size):
            arrays = {name: _read(stream, _ARRAYS[kind][name], part.stop - part.start)}
            if scales is not None:
                arrays["scales"] = scales[blocks_of(part.start) : blocks_of(part.stop)]
            if not are_all_numbers(arrays):
                raise misfit(self._size)
            for _, numbers in form(**arrays).chunks():
                yield part, numbers
        if stream.read(1):
            raise ValueError("it is longer than it says")

    def _kind(self, stream: Any) -> Kind:  # noqa: ANN401 - of zstandard
        """Return how it is packed, as its head says."""
        length = _exactly(stream, _LENGTH_BYTES)
        size = int.from_bytes(length, "little")
        if size > MOST_HEADER_BYTES:
            raise ValueError("its head is too long")
        head = length + _exactly(stream, size)
        for kind in _ARRAYS:
            if head == _head(kind, self._size)[0]:
                return kind
        raise misfit(self._size)


def _head(kind: Kind, size: int) -> tuple[bytes, Mapping[str, int]]:
    """Return the head of the unpacked file, and where each array begins in it."""
    found, end = dict[str, Any](), 0
    for name, dtype in _ARRAYS[kind].items():
        count = blocks_of(size) if name == "scales" else size
        begin, end = end, end + count * np.dtype(dtype).itemsize
        found[name] = {"dtype": _NAMES[dtype], "shape": [count], "data_offsets": [begin, end]}
    text = json.dumps(found, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    head = len(text).to_bytes(_LENGTH_BYTES, "little") + text
    return head, {name: len(head) + said["data_offsets"][0] for name, said in found.items()}


def _read(stream: Any, dtype: str, count: int) -> NDArray[Any]:  # noqa: ANN401 - of zstandard
    return np.frombuffer(_exactly(stream, count * np.dtype(dtype).itemsize), dtype)


def _exactly(stream: Any, size_bytes: int) -> bytes:  # noqa: ANN401 - of zstandard
    data: bytes = stream.read(size_bytes)
    if len(data) < size_bytes:
        raise ValueError("it is shorter than it says")
    return data
