"""What a folder's safetensors files say of themselves: how many numbers, and of which kind.

Owns reading their headers, which are JSON behind eight bytes of length. Reads no weights, and needs
no library of machine learning.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.errors import CorruptArtifactError

MAX_HEADER_BYTES = 100 << 20
"""The library's own bound."""

LENGTH_BYTES = 8


@dataclass(frozen=True)
class Weights:
    """What the files hold together."""

    parameters: int
    kinds: Mapping[str, int]
    """Kind of number, such as F32 -> how many there are."""
    size_bytes: int


def read_weights(folder: Path) -> Weights:
    """Return what all of a folder's files hold.

    Raises:
        CorruptArtifactError: there is none, or one is no such file.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CorruptArtifactError(f"{folder.name[:8]} has no weights: it is no model")
    kinds: Counter[str] = Counter()
    for path in files:
        for fields in header(path).values():
            kinds[str(fields["dtype"])] += math.prod(fields["shape"])
    size_bytes = sum(path.stat().st_size for path in files)
    return Weights(sum(kinds.values()), dict(kinds), size_bytes)


def header(path: Path) -> dict[str, Any]:
    """Return what one file says of each of its tensors: dtype, shape, data_offsets.

    Raises:
        CorruptArtifactError: it is no such file.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            found = json.loads(file.read(min(length, MAX_HEADER_BYTES)))
        return {name: found[name] for name in found if name != "__metadata__"}
    except (OSError, ValueError, TypeError) as error:
        raise CorruptArtifactError(f"{path.parent.name[:8]}/{path.name} can't be read") from error
