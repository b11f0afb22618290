"""Tensors on disk, as safetensors: our own files, and those of any Hugging Face folder.

Owns reading and writing them as float32 numpy arrays. Doesn't know what the tensors mean. No pickle
anywhere.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load_file, save_file

from jupiterd.errors import CorruptArtifactError
from jupiterd.weights_header import LENGTH_BYTES, header
from jupiterd.workers.training_engine import Tensors

N = TypeVar("N", np.float32, np.uint32)

WEIGHTS_FILE = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
"""Names the files of weights that are kept in several."""

_HEAD_ALIGNMENT = 8
"""A head's length is a number of eight bytes, and a multiple of eight."""


def save_tensors(tensors: Tensors, path: Path) -> None:
    """Write one file."""
    # The file holds an array's memory as it lies, so it must lie in order.
    ordered = {name: np.ascontiguousarray(values) for name, values in tensors.items()}
    save_file(ordered, path, metadata={"format": "pt"})


def file_head(shapes: Mapping[str, Sequence[int]]) -> tuple[bytes, dict[str, int]]:
    """Return the head of the file that `save_tensors` makes of tensors of these shapes.

    With it, each tensor's offset in the file in bytes: their values follow in the order of their
    names, without gaps.
    """
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end, places = 0, dict[str, int]()
    for name in sorted(shapes, key=str.encode):
        begin, end = end, end + 4 * math.prod(shapes[name])
        places[name] = begin
        head[name] = {
            "dtype": "F32",
            "shape": list(shapes[name]),
            "data_offsets": [begin, end],
        }
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _HEAD_ALIGNMENT)
    written = len(text).to_bytes(_HEAD_ALIGNMENT, "little") + text
    return written, {name: len(written) + begin for name, begin in places.items()}


def load_tensors(path: Path) -> Tensors:
    """Read one file.

    Raises:
        CorruptArtifactError: it isn't there, or not whole.
    """
    try:
        found = _loaded(path)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise CorruptArtifactError(f"{path.parent.name}/{path.name} can't be read") from error
    return {name: values.astype(np.float32, copy=False) for name, values in found.items()}


class StoredTensors(Mapping[str, NDArray[np.float32]]):
    """The weights in files, each read when it is asked for: never all at a time.

    Making it, and reading one, raise CorruptArtifactError where a file isn't there, or not whole.
    """

    def __init__(self, place: Path) -> None:
        """Take a file, or a folder as Hugging Face has them."""
        files = [place] if place.is_file() else _files_of(place)
        self._places = dict(found for file in files for found in _places_in(file))
        """Name -> file, where its tensors begin, and what its header says of this one."""

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        return self._read(name, _array)

    def words(self, name: str) -> NDArray[np.uint32]:
        """Return a tensor whose numbers are packed into 32 bits each."""
        return self._read(name, _words)

    def stretch(self, name: str, start: int, end: int) -> NDArray[np.float32]:
        """Return a stretch of a flattened tensor, and read no more than that: float32[numbers]."""
        file, at, said = self._places[name]
        begin, stop = said["data_offsets"]
        width = (stop - begin) // max(1, math.prod(said["shape"]))
        part = {"data_offsets": [begin + width * start, begin + width * end]}
        return self._made((file, at, {**said, **part, "shape": [end - start]}), _array)

    def _read(self, name: str, made: Callable[[Any], NDArray[N]]) -> NDArray[N]:
        return self._made(self._places[name], made)

    def _made(
        self, place: tuple[Path, int, Mapping[str, Any]], made: Callable[[Any], NDArray[N]]
    ) -> NDArray[N]:
        file, start, said = place
        try:
            begin, end = said["data_offsets"]
            with file.open("rb") as opened:
                opened.seek(start + begin)
                return made({**said, "data": opened.read(end - begin)})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CorruptArtifactError(f"{file.parent.name}/{file.name} can't be read") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, without reading it."""
        return tuple(self._places[name][2].get("shape", ()))


def stretch_of(tensors: Tensors, name: str, start: int, end: int) -> NDArray[np.float32]:
    """Return a stretch of a flattened tensor: float32[numbers].

    Of a tensor in a file no more is read than that.
    """
    read = getattr(tensors, "stretch", None)
    return tensors[name].reshape(-1)[start:end] if read is None else read(name, start, end)


def _places_in(file: Path) -> Iterator[tuple[str, tuple[Path, int, Mapping[str, Any]]]]:
    found = header(file)
    with file.open("rb") as opened:
        start = LENGTH_BYTES + int.from_bytes(opened.read(LENGTH_BYTES), "little")
    for name, said in found.items():
        yield name, (file, start, said)


def _files_of(folder: Path) -> list[Path]:
    index = folder / WEIGHTS_INDEX
    if not index.is_file():
        return [folder / WEIGHTS_FILE]
    try:
        fields: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))
        # A file outside the folder is none of the model's.
        names = {Path(str(name)).name for name in fields["weight_map"].values()}
        return [folder / name for name in sorted(names)]
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise CorruptArtifactError(f"{index.parent.name}/{index.name} can't be read") from error


def _loaded(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return load_file(path)
    except TypeError:  # bf16, which numpy doesn't have
        found = deserialize(path.read_bytes())
        return {name: _array(tensor) for name, tensor in found}


def _words(tensor: Any) -> NDArray[np.uint32]:  # noqa: ANN401 - {shape, dtype, data}
    kinds = {"U32": "<u4"}
    return np.frombuffer(tensor["data"], dtype=kinds[tensor["dtype"]]).reshape(tensor["shape"])


def _array(tensor: Any) -> NDArray[np.float32]:  # noqa: ANN401 - {shape, dtype, data}
    if tensor["dtype"] == "BF16":
        # The upper half of a float32.
        upper = np.frombuffer(tensor["data"], dtype="<u2").astype(np.uint32)
        return (upper << 16).view(np.float32).reshape(tensor["shape"])
    kinds = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    values = np.frombuffer(tensor["data"], dtype=kinds[tensor["dtype"]])
    return values.astype(np.float32).reshape(tensor["shape"])
