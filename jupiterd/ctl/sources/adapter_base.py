"""Which base an exported adapter was trained beside: its id and name, and a hash of its weights.

Owns that record and the comparison. It lies in jupiter.json beside the adapter, because peft warns
of fields of adapter_config.json that it doesn't know. Doesn't know where a base is looked for.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from blake3 import blake3

from jupiterd.adapter_folder import MOST_CONFIG_BYTES
from jupiterd.cycle.base.model_files import INDEX, weight_files
from jupiterd.errors import BrokenModelError
from jupiterd.ids import is_hex
from jupiterd.weights_header import LENGTH_BYTES, header

RECORD_FILE: Final = "jupiter.json"
"""The daemon's document of a model, for programs, in the folder of an export."""
RECORD: Final = "base"
"""Its key there."""

NAME_OF_MLX: Final = "model"
"""What mlx-lm's adapter_config.json calls the base."""

_DIGITS: Final = 64
_PART_BYTES: Final = 16 << 20
_MOST_BYTES: Final = 16 * MOST_CONFIG_BYTES
"""Of jupiter.json, which holds a long run's whole record."""


@dataclass(frozen=True)
class RecordedBase:
    """What an exported adapter says of its base; each is empty where nothing is known."""

    name: str = ""
    """What people called it where the adapter was trained."""
    id: str = ""
    """Of the artifact in the cluster that trained it."""
    weights: str = ""
    """The hash of its weights."""

    def to_plain(self) -> dict[str, str]:
        """Return the fields of the JSON document."""
        return asdict(self)


def recorded_base(folder: Path) -> RecordedBase:
    """Return what an adapter's folder says of its base beside what peft and mlx-lm write."""
    file = folder / RECORD_FILE
    try:
        said: Any = {} if file.stat().st_size > _MOST_BYTES else json.loads(file.read_bytes())
        found = cast("Mapping[str, Any]", said[RECORD])
        name = str(found.get("name") or "")
        return RecordedBase(name, _hash(found.get("id")), _hash(found.get("weights")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return RecordedBase()  # a stranger's folder, or one that has none


def is_other_base(adapter: Path, base: Path) -> bool:
    """Say whether an adapter was trained beside other weights; no where it doesn't tell.

    All weights are read, which takes about a second for two gigabytes.

    Raises:
        BrokenModelError: the weights can't be read.
    """
    wanted = recorded_base(adapter).weights
    return bool(wanted) and weights_hash(base) != wanted


def weights_hash(folder: Path) -> str:
    """Return the BLAKE3 hash of a model's tensors: their names, types, shapes and bytes.

    It is the same however many files hold them.

    Raises:
        BrokenModelError: the weights can't be read.
    """
    found = {name: (path, said) for path in _files(folder) for name, said in header(path).items()}
    whole = blake3(max_threads=blake3.AUTO)
    try:
        for name, (path, said) in sorted(found.items()):
            begin, end = said["data_offsets"]
            fields = [name, said["dtype"], said["shape"], end - begin]
            whole.update(json.dumps(fields).encode())
            _add(whole, path, begin, end - begin)
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise BrokenModelError(f"the weights in {folder.name} can't be read") from error
    return whole.hexdigest()


def _files(folder: Path) -> list[Path]:
    """Return the files that loaders read: some makers keep all weights twice."""
    here = sorted(folder.glob("*.safetensors"))
    index = folder / INDEX
    text = index.read_text(encoding="utf-8", errors="replace") if index.is_file() else ""
    read = weight_files([path.name for path in here], text)
    return [path for path in here if path.name in read] or here


def _add(whole: blake3, path: Path, begin: int, left: int) -> None:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        file.seek(LENGTH_BYTES + length + begin)
        while left:
            part = file.read(min(left, _PART_BYTES))
            if not part:
                raise ValueError(path)  # it is cut off
            whole.update(part)
            left -= len(part)


def _hash(value: object) -> str:
    text = str(value or "")
    return text if len(text) == _DIGITS and is_hex(text) else ""
