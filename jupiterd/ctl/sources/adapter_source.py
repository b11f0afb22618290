"""The command's fields about an adapter to begin with: its folder, its base, and what it is.

Owns finding the base and all checks that need no tensor: what its files say, and whether they fit
the base. The daemon takes the folder in. Doesn't know how an adapter is trained.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jupiterd.adapter_folder import (
    ADAPTER_CONFIG,
    adapter_file,
    base_named_in,
    found_base,
    holds_adapter,
    said_in,
)
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.hub.names import hub_name
from jupiterd.ctl.sources.model_source import model_arguments
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.adapters.adapter_files import AdapterFiles, read_adapter
from jupiterd.cycle.training.adapters.adapter_size import known_matrices
from jupiterd.errors import BrokenModelError, JupiterError, NotFoundError, UsageError
from jupiterd.model_folder import check_links
from jupiterd.path_text import path_of, path_text
from jupiterd.weight_files import check_file
from jupiterd.weights_header import header

FETCHING_S: Final = 3600.0
"""Seconds to wait for files from other nodes."""

CONVERT: Final = (
    'convert it: python -c "from peft import AutoPeftModelForCausalLM as M; '
    "M.from_pretrained('DIR').save_pretrained('DIR')\""
)
_PICKLE: Final = "adapter_model.bin"
_NAME_IT: Final = "--model BASE --adapter FOLDER names it, of a cycle --init BASE --adapter FOLDER"


def tuning_arguments(
    model: str, adapter: str | None, fetches: Fetches, state_dir: Path
) -> dict[str, Any]:
    """Return the fields about what training begins with: a model, and perhaps an adapter to it.

    Args:
        model: as `model_arguments` has it, or the folder of an adapter whose base is known here.
        adapter: the folder of an adapter to that model; None: there is none.
        fetches: gets the model if it still has to be downloaded.
        state_dir: of the daemon, which knows the cluster's models.

    Raises:
        UsageError: the adapter can't be trained, or not beside that model.
        JupiterError: as `model_arguments`.
    """
    if adapter is None:
        folder = path_of(model)
        if not holds_adapter(folder):
            return model_arguments(model, fetches)
        model = _base_of(folder, state_dir)
    else:
        folder = path_of(adapter)
    files = adapter_in(folder)
    found = model_arguments(model, fetches)
    if "weights_folder" not in found:
        raise UsageError(f"{model} has no weights that an adapter could stand beside", _NAME_IT)
    options = fitted(folder, files, json.loads(found["config"]), model)
    return {
        **found,
        "adapter_folder": path_text(folder.resolve()),
        "lora": options.to_text(),
    }


def adapter_in(folder: Path, purpose: str = "trained") -> AdapterFiles:
    """Return what an adapter's folder holds; `purpose`: what it is to be, for what is said of it.

    Raises:
        NotFoundError: there is no such folder, or it holds no adapter.
        BrokenModelError: a file of it can't be read, or is cut off.
        UsageError: it is no adapter that can be trained.
    """
    if not holds_adapter(folder):
        raise NotFoundError(
            f"there is no adapter in {path_text(folder)}",
            f"an adapter's folder has {ADAPTER_CONFIG} and its tensors as safetensors",
        )
    check_links(folder)
    if (said := said_in(folder)) is None:
        raise BrokenModelError(f"{ADAPTER_CONFIG} of {path_text(folder)} can't be read")
    file = adapter_file(folder)
    if not file.is_file() and (folder / _PICKLE).is_file():
        reason = (
            f"{path_text(folder)} holds its tensors as {_PICKLE}, and only safetensors are read"
        )
        raise UsageError(reason, CONVERT)
    if not file.is_file():
        raise BrokenModelError(f"{path_text(folder)} has no {file.name}")
    check_file(file)
    with _named(folder, purpose):
        return read_adapter(said, {n: tuple(t["shape"]) for n, t in header(file).items()})


def fitted(
    folder: Path,
    files: AdapterFiles,
    config: Mapping[str, Any],
    base: str,
    purpose: str = "trained",
) -> AdapterOptions:
    """Return the options of an adapter to a model; whoever trains it checks what isn't known here.

    Raises:
        UsageError: it is an adapter of another model.
    """
    matrices = known_matrices(config)
    if matrices is None:
        return files.options
    with _named(folder, purpose):
        return files.fitted(matrices, base)


def _base_of(folder: Path, state_dir: Path) -> str:
    """Return what `model_arguments` takes for the base that an adapter's folder names."""
    if (here := found_base(folder)) is not None:
        return path_text(here)
    named = base_named_in(folder)
    if not named:
        raise UsageError(f"{path_text(folder)} doesn't say which model it is for", _NAME_IT)
    return named if hub_name(named) else _of_cluster(folder, named, state_dir)


def _of_cluster(folder: Path, named: str, state_dir: Path) -> str:
    from jupiterd.ctl.calls import ask_over_grpc

    try:
        return str(
            ask_over_grpc(state_dir, f"model_files/{named}", FETCHING_S)["model"]["files_at"]
        )
    except JupiterError as error:
        raise NotFoundError(
            f"{path_text(folder)} is for {named[:200]}, which isn't known here", _NAME_IT
        ) from error


@contextmanager
def _named(folder: Path, purpose: str) -> Generator[None]:
    """Name the folder in what is said of its files."""
    try:
        yield
    except UsageError as error:
        reason = f"the adapter {path_text(folder)} can't be {purpose}: {error.message}"
        raise UsageError(reason, error.hint) from error
