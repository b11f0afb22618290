"""The check whether the files of a model folder are whole, as far as their headers show.

Owns reading the headers. Doesn't load a model: the machine that runs it finds out whether it loads.
"""

import json
from pathlib import Path
from typing import Any, Final

from jupiterd.cycle.base.model_files import FAST_TOKENIZER
from jupiterd.errors import CorruptArtifactError

LENGTH_BYTES: Final = 8
MAX_HEADER_BYTES: Final = 100 << 20
"""The limit of the safetensors format."""

HINT: Final = "fetch the model again: a file of it is missing or cut off"


def check_model_files(folder: Path) -> None:
    """Raise CorruptArtifactError if configuration, tokenizer or weights can't be read."""
    for name in ("config.json", FAST_TOKENIZER):
        if name == FAST_TOKENIZER and not (folder / name).is_file():
            continue  # a tokenizer in an older form
        if not isinstance(_read_json(folder / name), dict):
            raise CorruptArtifactError(f"{name} of {folder} says nothing", HINT)
    if "model_type" not in _read_json(folder / "config.json"):
        raise CorruptArtifactError(
            f"config.json of {folder} doesn't say what kind of model it is",
            "a generator is a Hugging Face folder that transformers or MLX can load",
        )
    for path in sorted(folder.glob("*.safetensors")):
        check_file(path)


def check_file(path: Path) -> None:
    """Raise CorruptArtifactError if a file of weights isn't whole."""
    if why := _mistake(path):
        raise CorruptArtifactError(f"{path.name} of {path.parent} {why}", HINT)


def _read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"{path} can't be read", HINT) from error


def _mistake(path: Path) -> str:
    """Return the mistake in a file of weights; empty: its header and its size agree."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if not 0 < length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
            return "is cut off, or no safetensors"
        header = file.read(length)
    try:
        fields: dict[str, Any] = json.loads(header)
        named = [tensor for name, tensor in fields.items() if name != "__metadata__"]
        end = max((int(tensor["data_offsets"][1]) for tensor in named), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "has no header that can be read"
    missing = LENGTH_BYTES + length + end - size
    return f"is cut off: {missing:,} bytes are missing" if missing > 0 else ""
