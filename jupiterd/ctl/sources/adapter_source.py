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
from jupiterd.ctl.chat.model_names import BASE, PROMOTED
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.hub.names import hub_name
from jupiterd.ctl.sources.adapter_base import is_other_base, recorded_base
from jupiterd.ctl.sources.model_source import model_arguments
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.adapters.adapter_files import AdapterFiles, read_adapter
from jupiterd.cycle.training.adapters.adapter_size import known_matrices
from jupiterd.errors import BrokenModelError, JupiterError, NotFoundError, UsageError
from jupiterd.ids import short
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
OTHER_BASE: Final = "name its own base: --model of a run, --init of a cycle, --base elsewhere"

MEANING_ANOTHER: Final = frozenset({BASE, PROMOTED})
"""Names of models that mean one thing here and another where an adapter was trained."""

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
    _check_weights(folder, model, Path(found["weights_folder"]), fetches)
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


def check_same_base(folder: Path, base: Path, called: str, purpose: str = "trained") -> None:
    """Raise UsageError where an adapter says that it was trained beside other weights.

    called: what people call the base
    """
    if is_other_base(folder, base):
        reason = f"the adapter {path_text(folder)} can't be {purpose}: it was trained beside other"
        raise UsageError(f"{reason} weights than those of {called}", which_base(folder))


def which_base(folder: Path) -> str:
    """Return a hint that says how an adapter's base is named, and which one it is."""
    said = recorded_base(folder)
    if not said.id:
        return OTHER_BASE
    name = f"{said.name}, " if said.name else ""
    return f"{OTHER_BASE}; it is {name}{short(said.id)} where it was trained"


def base_by_id(folder: Path, state_dir: Path) -> Path | None:
    """Return the base whose id an exported adapter says, from the cluster's store.

    None: it says none, or nobody here knows it.
    """
    if not (wanted := recorded_base(folder).id):
        return None
    try:
        return Path(of_cluster(wanted, state_dir))
    except JupiterError:
        return None


def of_cluster(named: str, state_dir: Path) -> str:
    """Return the folder of a model of the cluster; raises JupiterError where there is none."""
    from jupiterd.ctl.calls import ask_over_grpc

    found: Any = ask_over_grpc(state_dir, f"model_files/{named}", FETCHING_S)["model"]
    return str(found["files_at"])


def base_of_cluster(folder: Path, state_dir: Path, hint: str) -> str:
    """Return the folder of the base that an adapter names, from the cluster's store.

    Raises:
        NotFoundError: nobody here knows it.
        UsageError: the adapter names none.
    """
    named = base_named_in(folder)
    if not named:
        raise UsageError(f"{path_text(folder)} doesn't say which model it is for", hint)
    try:
        if named in MEANING_ANOTHER:  # of a cycle here, and not of whoever wrote the adapter
            raise NotFoundError(f"there is no model {named}", hint)
        return of_cluster(named, state_dir)
    except JupiterError as error:
        reason = f"{path_text(folder)} is for {_said(folder, named)}, which isn't known here"
        raise NotFoundError(reason, hint) from error


def _said(folder: Path, named: str) -> str:
    """Return how an adapter's base is told to people."""
    wanted = recorded_base(folder).id
    return f"{named[:200]} ({short(wanted)})" if wanted else named[:200]


def _check_weights(folder: Path, model: str, base: Path, fetches: Fetches) -> None:
    """Raise UsageError where a base has other weights; now, or once they are fetched."""
    fetches.check(base, lambda place: check_same_base(folder, place, model))


def _base_of(folder: Path, state_dir: Path) -> str:
    """Return what `model_arguments` takes for the base that an adapter's folder names."""
    if (here := base_by_id(folder, state_dir) or found_base(folder)) is not None:
        return path_text(here)
    if hub_name(named := base_named_in(folder)):
        return named
    return base_of_cluster(folder, state_dir, _NAME_IT)


@contextmanager
def _named(folder: Path, purpose: str) -> Generator[None]:
    """Name the folder in what is said of its files."""
    try:
        yield
    except UsageError as error:
        reason = f"the adapter {path_text(folder)} can't be {purpose}: {error.message}"
        raise UsageError(reason, error.hint) from error
