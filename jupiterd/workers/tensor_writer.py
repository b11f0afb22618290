"""Writing a file of tensors one by one, where nobody has memory for all of them.

Owns the file that grows. It becomes what `tensor_file.save_tensors` writes, to the last byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np

from jupiterd.workers.tensor_file import file_head
from jupiterd.workers.training_engine import NamedTensor


def save_each(
    tensors: Iterable[NamedTensor], shapes: Mapping[str, Sequence[int]], path: Path | None
) -> None:
    """Write a file of tensors, which come in any order.

    Other ranks may take part in making each, so all are gone through, whatever happens here.

    shapes: of all tensors, by their names; path: None to go through them alone

    Raises:
        OSError: the file couldn't be written; raised once all tensors were gone through.
    """
    head, places = file_head(shapes)
    with _GrowingFile(path) as file:
        file.put(0, head)
        for name, values in tensors:
            file.put(places[name], np.ascontiguousarray(values, "<f4").data)


class _GrowingFile:
    """A file that is written in pieces, or none; what goes wrong is raised at the end."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> Self:
        try:
            self._file = None if self._path is None else self._path.open("wb")
        except OSError as error:
            self._failure = error
        return self

    def put(self, place: int, data: bytes | memoryview) -> None:
        """Write at a place, unless something went wrong before."""
        if self._file is None or self._failure is not None:
            return
        try:
            self._written(self._file, place, data)
        except OSError as error:
            self._failure = error

    def _written(self, file: BinaryIO, place: int, data: bytes | memoryview) -> None:
        file.seek(place)
        file.write(data)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._failure = self._failure or error
        if self._failure is not None and kind is None:
            raise self._failure
