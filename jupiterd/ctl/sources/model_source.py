"""The command's fields about a model: a preset's name, or the config.json of a folder.

Owns that distinction, and reads config.json. A model of the hub becomes such a folder (`hub`),
whose weights may still have to be downloaded. Doesn't know which presets there are.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.hub.model import HubModel, found
from jupiterd.ctl.hub.names import hub_name
from jupiterd.ctl.sources.folder_diagnosis import check_folder, check_that_it_is_no_adapter
from jupiterd.cycle.training.architectures import check_architecture
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.model_folder import check_links
from jupiterd.path_text import path_text

CONFIG = "config.json"
HINT = "give a size such as 1m or gpt2-medium, or a Hugging Face model's folder or id, ORG/NAME"


def model_arguments(text: str, fetches: Fetches) -> dict[str, Any]:
    """Return the command's fields; if a folder holds weights, training starts from them.

    Args:
        text: a size, a folder, or a model of the hub.
        fetches: gets the model if it still has to be downloaded.

    Raises:
        NotFoundError: there is no such folder, or its config.json can't be read.
        UsageError: its weights or its architecture can't be trained.
        JupiterError: it is a model of the hub that can't be downloaded, or can't be trained.
    """
    folder = Path(text).expanduser()
    if "/" not in text and not (folder / CONFIG).is_file():
        return {"model": text}
    if (name := hub_name(text)) and not folder.exists():
        return _of_hub(found(name, is_trained=True), fetches)
    return _of_folder(folder)


def _of_hub(model: HubModel, fetches: Fetches) -> dict[str, Any]:
    name = model.listing.name.model
    config, said = config_of(model.folder)
    check_architecture(str(model.listing.name), said)
    fetches.add(model, partial(_check_download, str(model.listing.name), said))
    return {"model": name, "config": config, "weights_folder": str(model.folder)}


def _check_download(name: str, said: Mapping[str, Any], folder: Path) -> None:
    if not check_folder(folder, said):
        raise UsageError(f"the model {name} has no safetensors, and nothing else is read")


def config_of(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the text of a folder's config.json, and its content.

    Raises:
        NotFoundError: there is no such folder, or the file can't be read.
        UsageError: the file isn't one JSON object, or a link leads out of the folder.
    """
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {path_text(folder)} on this machine", HINT)
    check_links(folder)
    try:
        config = (folder / CONFIG).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no {CONFIG} in {path_text(folder)}", HINT) from error
    except (OSError, ValueError) as error:
        raise NotFoundError(f"{folder / CONFIG} can't be read", HINT) from error
    return config, _said(config)


def _of_folder(folder: Path) -> dict[str, Any]:
    check_that_it_is_no_adapter(folder)
    config, said = config_of(folder)
    where = folder.resolve()
    check_architecture(where.name, said)
    holds_weights = check_folder(where, said)
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
