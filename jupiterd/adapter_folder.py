"""Folders of adapters: whose they are, and one folder of an adapter and its base together.

Owns that layout. Doesn't know tensors. An adapter alone is no model. Joined, its folder has the
adapter's own files, those of its base that aren't weights, and a link to the base:

    adapter_config.json, adapter_model.safetensors, config.json, the tokenizer's files
    base -> the folder of the frozen weights
"""

import json
from pathlib import Path
from typing import Any, Final

from jupiterd.ids import is_hex, short

ADAPTER_FILE: Final = "adapter_model.safetensors"
ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER_FILE_OF_MLX: Final = "adapters.safetensors"
BASE_KEY: Final = "base_model_name_or_path"
_BASE_KEYS: Final = (BASE_KEY, "model")
"""What peft and mlx-lm call it."""
MOST_CONFIG_BYTES: Final = 1 << 20

MERGE: Final = (
    'merge it into its model: python -c "from peft import AutoPeftModelForCausalLM as M; '
    "M.from_pretrained('DIR').merge_and_unload().save_pretrained('MERGED')\""
)
MERGE_OURS: Final = "jupiterctl model export RUN --merge --to FOLDER writes one with its base"

_ID_DIGITS: Final = 64
_CONFIG: Final = "config.json"
_BASE: Final = "base"
_OF_WEIGHTS: Final = (".safetensors", ".safetensors.index.json", ".bin", ".gguf", ".pt", ".pth")


def base_named_in(folder: Path) -> str:
    """Return what an adapter's folder calls its base; empty: it is no adapter's folder."""
    said = said_in(folder) or {}
    return next((str(said[key]) for key in _BASE_KEYS if said.get(key)), "")


def said_in(folder: Path) -> dict[str, Any] | None:
    """Return the content of an adapter's configuration; None: it can't be read."""
    file = folder / ADAPTER_CONFIG
    try:
        if file.stat().st_size > MOST_CONFIG_BYTES:
            return None
        said: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # another member's, or a stranger's
        return None
    return said if isinstance(said, dict) else None


def holds_adapter(folder: Path) -> bool:
    """Say whether a folder holds an adapter alone; one that `join` made is a model."""
    try:
        return (folder / ADAPTER_CONFIG).is_file() and base_beside(folder) is None
    except OSError:  # such as a name that is too long
        return False


def found_base(folder: Path) -> Path | None:
    """Return the base that an adapter's folder names by a path, which is a model's folder here.

    None: it names none so. The path may begin at the adapter's own folder, or where that lies.
    """
    named = base_named_in(folder)
    try:
        where = folder.resolve()
        places = [Path(named).expanduser(), where / named, where.parent / named] if named else []
        return next((place.resolve() for place in places if (place / _CONFIG).is_file()), None)
    except (OSError, RuntimeError, ValueError):  # a stranger's text
        return None


def adapter_file(folder: Path) -> Path:
    """Return the file of an adapter's tensors: peft's, or mlx-lm's where there is none."""
    of_mlx = folder / ADAPTER_FILE_OF_MLX
    is_of_mlx = of_mlx.is_file() and not (folder / ADAPTER_FILE).is_file()
    return of_mlx if is_of_mlx else folder / ADAPTER_FILE


def no_model(folder: Path) -> tuple[str, str]:
    """Return why the folder of an adapter alone is no model, and how it becomes one.

    Two empty texts: it holds no adapter, or its base as well.
    """
    if not (folder / ADAPTER_CONFIG).is_file() or base_beside(folder) is not None:
        return "", ""
    base = base_named_in(folder)
    is_ours = len(base) == _ID_DIGITS and is_hex(base)
    of = f" for {short(base) if is_ours else base}" if base else ""
    return f"{folder} holds a LoRA adapter{of}, not a model", MERGE_OURS if is_ours else MERGE


def join(adapter: Path, base: Path, place: Path) -> Path:
    """Make the folder of both at a place where there is none; return it."""
    place.mkdir(parents=True)
    (place / _BASE).symlink_to(base.resolve(), target_is_directory=True)
    taken = {path.name: path for path in adapter.iterdir() if path.is_file()}
    found = {path.name: path for path in base.iterdir() if path.is_file() and not _is_weights(path)}
    for name, path in (found | taken).items():
        (place / name).symlink_to(path.resolve())
    return place


def base_beside(folder: Path) -> Path | None:
    """Return the folder of the frozen weights, of a folder that `join` made; None: of a model."""
    link = folder / _BASE
    return link.resolve() if link.is_symlink() and (folder / ADAPTER_CONFIG).is_file() else None


def _is_weights(path: Path) -> bool:
    return path.name.endswith(_OF_WEIGHTS)
