"""A model of the Hugging Face hub, on its way into a folder of this machine.

Owns what of it is fetched, and what the library's errors mean. The folder is the library's own, so
that a second time costs nothing; from there the cluster has it as any other folder.
"""

import re
from pathlib import Path
from typing import Any

from jupiterd.cycle.model_files import GENERATOR_FILES
from jupiterd.errors import (
    DiskFullError,
    MissingExtraError,
    NotFoundError,
    RefusedError,
    SourceUnreachableError,
    UsageError,
)
from jupiterd.store.disk import is_no_room

WANTED = (*GENERATOR_FILES, "tokenizer*.json")

is_hub_name = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*").fullmatch
"""Says whether a text can be a model's id, such as Qwen/Qwen3-0.6B."""


def fetched(name: str) -> Path:
    """Return the folder with a model's configuration, weights and tokenizer, fetched where needed.

    Raises:
        MissingExtraError: the library isn't installed.
        NotFoundError: there is neither such a folder here, nor such a model.
        RefusedError: it isn't open to everybody.
        SourceUnreachableError: there is no way to the hub.
        UsageError: its weights have another form than safetensors.
        DiskFullError: there is no room for it.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
    except ModuleNotFoundError as error:
        raise MissingExtraError("models of Hugging Face need its library") from error
    library: Any = snapshot_download
    try:
        folder = Path(library(name, allow_patterns=list(WANTED)))
    except GatedRepoError as error:
        raise RefusedError(
            f"the model {name} is open to those alone who have agreed to its terms",
            f"agree at huggingface.co/{name}, and set HF_TOKEN",
        ) from error
    except RepositoryNotFoundError as error:
        raise NotFoundError(
            f"there is neither a folder {name} on this machine, nor such a model on the hub",
            "look its name up at huggingface.co/models",
        ) from error
    except Exception as error:  # whatever its HTTP client calls a lost connection
        if isinstance(error, OSError) and is_no_room(error):
            raise DiskFullError(f"there is no room for the model {name}") from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceUnreachableError(
            f"there is no folder {name} on this machine, and the hub can't be asked: {reason}"
        ) from error
    if not any(folder.glob("*.safetensors")):
        raise UsageError(f"the model {name} has no safetensors, and nothing else is read")
    return folder


def kept(name: str) -> Path | None:
    """Return the folder of a model that was fetched before; None where none was, whole."""
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError:
        return None
    library: Any = snapshot_download
    try:
        folder = Path(library(name, allow_patterns=list(WANTED), local_files_only=True))
    except Exception:  # noqa: BLE001 - a name that can't be, a cache that is damaged, nothing there
        return None
    return folder if any(folder.glob("*.safetensors")) else None
