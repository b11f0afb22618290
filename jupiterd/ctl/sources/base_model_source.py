"""The command's fields about the base model that a cycle starts from.

Owns the look-up and the checks of its folder. Doesn't know how a cycle uses it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.sources.adapter_source import tuning_arguments
from jupiterd.ctl.sources.folder_diagnosis import index_of
from jupiterd.cycle.base.model_files import missing_files
from jupiterd.cycle.generation.chat_models import CONFIG_FILE, is_talked_to
from jupiterd.errors import NotFoundError, SourceUnreachableError, UsageError

SCRATCH = "scratch"
"""Training starts from random weights."""

BESIDE = "name it: --init BASE --adapter FOLDER"

HINT = (
    "--init scratch, a model of the hub (ORG/NAME), or a Hugging Face folder with config.json, "
    "tokenizer.json and safetensors"
)


@dataclass(frozen=True)
class FirstModel:
    """What people want round 1 to begin with."""

    model: str = SCRATCH
    """Scratch, a folder, a model of the hub, or the folder of an adapter whose base is known."""
    adapter: str | None = None
    """The folder of an adapter to that model; None: there is none."""


def init_arguments(wanted: FirstModel, fetches: Fetches, state_dir: Path) -> dict[str, Any]:
    """Return the command's fields; empty if training starts from scratch.

    Args:
        wanted: the model, and perhaps an adapter to it.
        fetches: gets the model if it still has to be downloaded.
        state_dir: of the daemon, which knows the bases of the cluster's adapters.

    Raises:
        NotFoundError: there is no such folder.
        UsageError: it isn't a complete model, or the adapter can't be trained beside it.
        JupiterError: it is a model of the hub that can't be downloaded, or can't be trained.
    """
    model = wanted.model
    if model == SCRATCH and wanted.adapter is not None:
        raise UsageError("an adapter stands beside a model, and this cycle draws its own", BESIDE)
    if model == SCRATCH:
        return {}
    found = tuning_arguments(model, wanted.adapter, fetches, state_dir)
    if "config" not in found:
        raise NotFoundError(f"there is no model {model}: it is no folder of this machine", HINT)
    if (folder := found.get("weights_folder")) is None:
        return {"init": found}
    _check_that_it_is_whole(Path(folder), fetches, model)
    names = fetches.names(Path(folder))  # the daemon checks again after the download
    return {"init": {**found, "is_chat": is_talked_to(names, _config_of(Path(folder)))}}


def planned_init(wanted: FirstModel, fetches: Fetches, state_dir: Path) -> dict[str, Any]:
    """Return the fields of a plan's command, which needs no weights.

    Empty if the hub can't be reached: a plan needs no network.

    Raises:
        NotFoundError: there is no such folder, or no such model.
        UsageError: it isn't a complete model, or can't be trained.
    """
    try:
        return init_arguments(wanted, fetches, state_dir)
    except SourceUnreachableError:
        return {}


def _check_that_it_is_whole(folder: Path, fetches: Fetches, wanted: str) -> None:
    if missing := missing_files(fetches.names(folder), index_of(folder)):
        raise UsageError(f"{wanted} is no whole model: it lacks {', '.join(missing)}", HINT)


def _config_of(folder: Path) -> str:
    """Return the text of a folder's tokenizer_config.json; empty if it has none."""
    config = folder / CONFIG_FILE
    return config.read_text(encoding="utf-8", errors="replace") if config.is_file() else ""
