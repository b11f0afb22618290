"""What the daemon itself reads of a model's folder before an engine loads it.

Owns what loading needs to know, and the looks that find damaged weights: each takes milliseconds,
where an engine takes seconds to fail. Doesn't know engines. Blocks: call it from a thread.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.adapter_folder import base_beside
from jupiterd.cycle.base.model_files import FAST_TOKENIZER, may_have_tokenizer
from jupiterd.cycle.training.tensor_shapes import misfit
from jupiterd.errors import CorruptArtifactError, CorruptWeightsError
from jupiterd.weight_files import HINT, damage
from jupiterd.weights_header import header

MOST_JSON_BYTES: Final = 64 << 20
"""Of a file beside a model's weights that the daemon reads itself."""

TEMPLATE_FILES: Final = ("chat_template.jinja", "chat_template.json")
_CONFIG_OF_TOKENIZER = "tokenizer_config.json"
_QUANTIZED: Final = ("quantization", "quantization_config")
_OF_ANOTHER: Final = "its weights and its config.json are of two models: fetch both again"


@dataclass(frozen=True)
class ModelFiles:
    """A model of this machine."""

    key: str
    """Names its exact weights."""
    name: str
    folder: Path
    config: Mapping[str, Any]
    has_template: bool
    """It can chat."""
    knows_tools: bool = False
    """Its template has a place for tools."""


def model_files(key: str, name: str, folder: Path) -> ModelFiles:
    """Read what loading needs to know of a model's folder.

    Raises:
        CorruptWeightsError: it is no model's folder.
    """
    config = _json(folder / "config.json")
    if config is None:
        raise CorruptWeightsError(
            f"{name} has no config.json that can be read: it is no model", HINT
        )
    template = _template(folder)
    return ModelFiles(key, name, folder, config, bool(template), "tools" in template)


def check_files(model: ModelFiles) -> None:
    """Raise CorruptWeightsError where weights or tokenizer are missing or cut off."""
    try:
        found = damage(model.folder) or _damaged_tokenizer(model.folder)
    except OSError as error:
        found = f"{model.folder} can't be read: {error.strerror}"
    if found:
        raise CorruptWeightsError(f"{model.name} can't be loaded: {found}", HINT)


def check_folder(name: str, folder: Path) -> None:
    """Raise CorruptWeightsError where no engine could load what is in a folder.

    That looks at all that can be seen without an engine, the shapes of the weights among it.
    """
    model = model_files("", name, folder)
    check_files(model)
    check_shapes(model)


def check_shapes(model: ModelFiles) -> None:
    """Raise CorruptWeightsError where a model's weights contradict its config.json.

    For a model that an engine has failed to load, as some leave out what they don't know, and for
    one that somebody is about to serve.
    """
    if any(model.config.get(key) for key in _QUANTIZED):
        return  # their tensors are packed
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        folder = base_beside(model.folder) or model.folder
        for path in sorted(folder.glob("*.safetensors")):
            shapes |= {name: tuple(said["shape"]) for name, said in header(path).items()}
    except (CorruptArtifactError, OSError, TypeError, KeyError):
        return
    if why := misfit(model.config, shapes):
        raise CorruptWeightsError(f"{model.name} can't be loaded: {why}", _OF_ANOTHER)


def _damaged_tokenizer(folder: Path) -> str:
    """Return what is wrong with a folder's tokenizer, as far as that shows."""
    if not may_have_tokenizer([path.name for path in folder.iterdir()]):
        return f"{FAST_TOKENIZER} isn't there, nor a tokenizer in another form"
    file = folder / FAST_TOKENIZER
    return f"{file.name} can't be read" if file.exists() and _json(file) is None else ""


def _template(folder: Path) -> str:
    """Return the text of all chat templates; empty where a model has none."""
    said = (_json(folder / _CONFIG_OF_TOKENIZER) or {}).get("chat_template") or ""
    files = [folder / name for name in TEMPLATE_FILES]
    return "".join([str(said), *(_text(path) or " " for path in files if path.is_file())])


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _json(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            return None
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]
