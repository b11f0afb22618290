"""The command's fields about the base model that a cycle starts from.

Owns the look-up and the checks of its folder. Doesn't know how a cycle uses it.
"""

from pathlib import Path
from typing import Any

from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.sources.folder_diagnosis import index_of
from jupiterd.ctl.sources.model_source import model_arguments
from jupiterd.cycle.base.model_files import missing_files
from jupiterd.cycle.generation.chat_models import CONFIG_FILE, is_talked_to
from jupiterd.errors import NotFoundError, SourceUnreachableError, UsageError

SCRATCH = "scratch"
"""Training starts from random weights."""

HINT = (
    "--init scratch, a model of the hub (ORG/NAME), or a Hugging Face folder with config.json, "
    "tokenizer.json and safetensors"
)


def init_arguments(wanted: str, fetches: Fetches) -> dict[str, Any]:
    """Return the command's fields; empty if training starts from scratch.

    Args:
        wanted: scratch, a folder, or a model of the hub.
        fetches: gets the model if it still has to be downloaded.

    Raises:
        NotFoundError: there is no such folder.
        UsageError: it isn't a complete model.
        JupiterError: it is a model of the hub that can't be downloaded, or can't be trained.
    """
    if wanted == SCRATCH:
        return {}
    found = model_arguments(wanted, fetches)
    if "config" not in found:
        raise NotFoundError(f"there is no model {wanted}: it is no folder of this machine", HINT)
    if (folder := found.get("weights_folder")) is None:
        return {"init": found}
    _check_that_it_is_whole(Path(folder), fetches, wanted)
    names = fetches.names(Path(folder))  # the daemon checks again after the download
    return {"init": {**found, "is_chat": is_talked_to(names, _config_of(Path(folder)))}}


def planned_init(wanted: str, fetches: Fetches) -> dict[str, Any]:
    """Return the fields of a plan's command, which needs no weights.

    Empty if the hub can't be reached: a plan needs no network.

    Raises:
        NotFoundError: there is no such folder, or no such model.
        UsageError: it isn't a complete model, or can't be trained.
    """
    try:
        return init_arguments(wanted, fetches)
    except SourceUnreachableError:
        return {}


def _check_that_it_is_whole(folder: Path, fetches: Fetches, wanted: str) -> None:
    if missing := missing_files(fetches.names(folder), index_of(folder)):
        raise UsageError(f"{wanted} is no whole model: it lacks {', '.join(missing)}", HINT)


def _config_of(folder: Path) -> str:
    """Return the text of a folder's tokenizer_config.json; empty if it has none."""
    config = folder / CONFIG_FILE
    return config.read_text(encoding="utf-8", errors="replace") if config.is_file() else ""
