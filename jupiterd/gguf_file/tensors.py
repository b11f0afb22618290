"""The weights of a model folder in a GGUF file's layout, one tensor at a time.

Owns reading safetensors without a machine-learning library, and reordering rows as llama.cpp
expects. Holds one tensor in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupiterd.errors import UsageError
from jupiterd.gguf_file.architecture import Architecture
from jupiterd.weights_header import LENGTH_BYTES, header

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KINDS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
_EXACT = ("_norm.weight", "position_embd.weight")
"""Tensors that are written in 32 bits, as by llama.cpp's own converter."""

_UNREAD = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq")
"""Tensors in old files that aren't weights."""


@dataclass(frozen=True)
class StoredTensor:
    """The position, dtype and shape of one tensor in a safetensors file."""

    name: str
    """Its name in the Hugging Face file."""
    file: Path
    offset: int
    """In bytes from the start of the file."""
    kind: str
    shape: tuple[int, ...]

    def read(self, architecture: Architecture, name: str) -> "NDArray[np.floating[Any]]":
        """Return the values in llama.cpp's layout, with the dtype for llama.cpp's name `name`."""
        import numpy as np

        stored = np.memmap(self.file, _KINDS[self.kind], "r", self.offset, self.shape)
        if self.kind == "BF16":
            values = (stored.astype(np.uint32) << 16).view(np.float32)
        else:
            values = stored.astype(np.float32)
        if architecture.is_turned(self.name):
            values = values.T
        if heads := architecture.paired_heads(self.name):
            values = _woven(values, heads)
        return np.ascontiguousarray(values, dtype=self.written_as(name))

    def written_as(self, name: str) -> "np.dtype[np.floating[Any]]":
        """Return the dtype for a tensor with this llama.cpp name: float32 or float16."""
        import numpy as np

        is_exact = len(self.shape) < 2 or name.endswith(_EXACT)
        return np.dtype(np.float32 if is_exact else np.float16)

    def shape_in(self, architecture: Architecture) -> tuple[int, ...]:
        """Return the shape in the GGUF file."""
        return self.shape[::-1] if architecture.is_turned(self.name) else self.shape


def stored_tensors(folder: Path, *, is_tied: bool) -> Iterator[StoredTensor]:
    """Yield the tensors of a folder; raise UsageError for an unknown dtype."""
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as opened:
            start = LENGTH_BYTES + int.from_bytes(opened.read(LENGTH_BYTES), "little")
        for name, said in header(file).items():
            if name.endswith(_UNREAD) or (is_tied and name == "lm_head.weight"):
                continue
            if said["dtype"] not in _KINDS:
                raise UsageError(f"no weights of dtype {said['dtype']} are written as GGUF here")
            shape = tuple(map(int, said["shape"]))
            offset = start + int(said["data_offsets"][0])
            yield StoredTensor(name, file, offset, str(said["dtype"]), shape)


def _woven(values: "NDArray[np.float32]", heads: int) -> "NDArray[np.float32]":
    """Return the rows with the two halves of each head interleaved."""
    halves = values.reshape(heads, 2, len(values) // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)
