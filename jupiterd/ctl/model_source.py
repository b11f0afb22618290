"""What the daemon is told of a model: the name of a preset, or what a Hugging Face folder says.

Owns that choice and reading config.json. A model of the hub becomes such a folder (`hub_model`).
Doesn't know which presets there are.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from jupiterd.ctl.folder_diagnosis import check_folder, check_that_it_is_no_adapter
from jupiterd.ctl.hub_model import fetched, is_hub_name, kept
from jupiterd.cycle.architectures import check_architecture
from jupiterd.cycle.training.model_traits import is_tied
from jupiterd.errors import NotFoundError, UsageError

CONFIG = "config.json"
HINT = "give a size such as 1m or gpt2-medium, or a Hugging Face model's folder or id"


def model_arguments(text: str) -> dict[str, Any]:
    """Return what the daemon is told; where a folder holds weights, training starts from them.

    Raises:
        NotFoundError: the folder isn't here, or has no config.json that can be read.
        UsageError: it holds weights in another form than safetensors.
        JupiterError: it is the id of a model that can't be fetched.
    """
    folder = Path(text).expanduser()
    if "/" not in text and not (folder / CONFIG).is_file():
        return {"model": text}
    if is_hub_name(text) and not folder.exists():
        return {**_of_folder(fetched(text)), "model": text.rpartition("/")[2]}
    return _of_folder(folder)


def kept_arguments(text: str) -> dict[str, Any] | None:
    """Return what `model_arguments` would, without fetching anything; None: it isn't here yet.

    Raises:
        NotFoundError: the folder isn't here, or has no config.json that can be read.
        UsageError: it holds weights in another form than safetensors.
    """
    if not is_hub_name(text) or Path(text).expanduser().exists():
        return model_arguments(text)
    folder = kept(text)
    return None if folder is None else {**_of_folder(folder), "model": text.rpartition("/")[2]}


def _of_folder(folder: Path) -> dict[str, Any]:
    check_that_it_is_no_adapter(folder)
    try:
        config = (folder / CONFIG).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise NotFoundError(f"{folder / CONFIG} can't be read", HINT) from error
    where = folder.resolve()
    said = _said(config)
    check_architecture(where.name, said)
    holds_weights = check_folder(where, is_tied=is_tied(said))
    return {
        "model": where.name,
        "config": config,
        **({"weights_folder": str(where)} if holds_weights else {}),
    }


def _said(config: str) -> Mapping[str, Any]:
    try:
        said: object = json.loads(config)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise UsageError("config.json isn't one JSON object", HINT)
    return cast("dict[str, Any]", said)


def tokenizer_options(model: dict[str, Any]) -> dict[str, Any]:
    """Return how text is cut for weights that exist: by the tokenizer that lies beside them."""
    folder = model.get("weights_folder")
    if folder is None or not (Path(folder) / "tokenizer.json").is_file():
        return {}
    return {"tokenizer_path": folder}
