"""The headers of a folder's safetensors files: how many parameters, and of which dtype.

Owns reading the headers, which are JSON after eight bytes of length. Reads no weights, and needs no
machine-learning library.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.adapter_folder import base_beside
from jupiterd.errors import BrokenModelError
from jupiterd.ids import is_hex, short

MAX_HEADER_BYTES = 100 << 20
"""The safetensors library's own limit."""

LENGTH_BYTES = 8


@dataclass(frozen=True)
class Weights:
    """The totals of a folder's safetensors files."""

    parameters: int
    kinds: Mapping[str, int]
    """dtype, such as F32 -> number of parameters."""
    size_bytes: int


def read_weights(folder: Path) -> Weights:
    """Return the totals of all safetensors files of a folder; of an adapter's, of its base.

    Raises:
        BrokenModelError: there is none, or one can't be read.
    """
    folder = base_beside(folder) or folder
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise BrokenModelError(f"{_shown(folder)} has no weights: it is no model")
    kinds: Counter[str] = Counter()
    for path in files:
        for fields in header(path).values():
            kinds[str(fields["dtype"])] += math.prod(fields["shape"])
    size_bytes = sum(path.stat().st_size for path in files)
    return Weights(sum(kinds.values()), dict(kinds), size_bytes)


def header(path: Path) -> dict[str, Any]:
    """Return the header of one file: tensor name -> dtype, shape and data_offsets.

    Raises:
        BrokenModelError: the file can't be read as safetensors.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            found = json.loads(file.read(min(length, MAX_HEADER_BYTES)))
        return {name: found[name] for name in found if name != "__metadata__"}
    except (OSError, ValueError, TypeError) as error:
        raise BrokenModelError(f"{_shown(path.parent)}/{path.name} can't be read") from error


def _shown(folder: Path) -> str:
    """Return what people call a folder: an artifact by its first digits, their own by its name."""
    return short(folder.name) if is_hex(folder.name) else folder.name
