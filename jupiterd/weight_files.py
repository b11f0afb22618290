"""The check whether the files of a model folder are whole, as far as their headers show.

Owns reading the headers, and which files there should be. Doesn't load a model: the machine that
runs it finds out whether it loads. Takes milliseconds, however large the weights are.
"""

import json
from pathlib import Path
from typing import Any, Final

from jupiterd.adapter_folder import base_beside
from jupiterd.cycle.base.model_files import FAST_TOKENIZER, INDEX, shards_in
from jupiterd.errors import BrokenModelError

LENGTH_BYTES: Final = 8
MAX_HEADER_BYTES: Final = 100 << 20
"""The limit of the safetensors format."""

HINT: Final = "fetch the model again: a file of it is missing or cut off"


def check_model_files(folder: Path) -> None:
    """Raise BrokenModelError if configuration, tokenizer or weights can't be read."""
    for name in ("config.json", FAST_TOKENIZER):
        if name == FAST_TOKENIZER and not (folder / name).is_file():
            continue  # a tokenizer in an older form
        if not isinstance(_read_json(folder / name), dict):
            raise BrokenModelError(f"{name} of {folder} says nothing", HINT)
    if "model_type" not in _read_json(folder / "config.json"):
        raise BrokenModelError(
            f"config.json of {folder} doesn't say what kind of model it is",
            "a generator is a Hugging Face folder that transformers or MLX can load",
        )
    for path in sorted(folder.glob("*.safetensors")):
        check_file(path)


def check_file(path: Path) -> None:
    """Raise BrokenModelError if a file of weights isn't whole."""
    if why := _mistake(path):
        raise BrokenModelError(f"{path.name} of {path.parent} {why}", HINT)


def damage(folder: Path) -> str:
    """Return what no engine could load in a model's folder, which begins with the file's name.

    Empty: its weights are there and whole, as far as their headers show.
    """
    folder = base_beside(folder) or folder
    names = {path.name for path in folder.iterdir()}
    if INDEX in names and (lacking := _lacking(folder, names)):
        return lacking
    weights = sorted(name for name in names if name.endswith(".safetensors"))
    if not weights:
        return "model.safetensors isn't there, nor any other file of weights as safetensors"
    found = ((name, _mistake(folder / name)) for name in weights)
    return next((f"{name} {why}" for name, why in found if why), "")


def _lacking(folder: Path, names: set[str]) -> str:
    try:
        index = (folder / INDEX).read_text(encoding="utf-8")
    except (OSError, ValueError):
        index = ""
    missing = sorted(shards_in(index) - names)
    if not missing:
        return ""
    if not index or not missing[0].endswith(".safetensors"):
        return f"{INDEX} can't be read"
    more = f", and so are {len(missing) - 1} more" if missing[1:] else ""
    return f"{missing[0]} is missing, which {INDEX} names{more}"


def _read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenModelError(f"{path} can't be read", HINT) from error


def _mistake(path: Path) -> str:
    """Return the mistake in a file of weights; empty: its header and its size agree."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            if not 0 < length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
                return "is cut off, or no safetensors"
            header = file.read(length)
    except OSError as error:
        return f"can't be read: {error.strerror}"
    try:
        fields: dict[str, Any] = json.loads(header)
        named = [tensor for name, tensor in fields.items() if name != "__metadata__"]
        end = max((int(tensor["data_offsets"][1]) for tensor in named), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return "has no header that can be read"
    missing = LENGTH_BYTES + length + end - size
    return f"is cut off: {missing:,} bytes are missing" if missing > 0 else ""
