"""What the daemon is told of the open base model that a cycle begins with.

Owns finding it and the checks of its folder. Doesn't know what is done with it.
"""

from pathlib import Path
from typing import Any

from jupiterd.ctl.model_source import kept_arguments, model_arguments
from jupiterd.cycle.model_files import missing_files
from jupiterd.errors import UsageError

SCRATCH = "scratch"
"""Training begins with weights that are drawn."""

HINT = "--init scratch, or a Hugging Face folder with config.json, tokenizer.json and safetensors"


def init_arguments(wanted: str) -> dict[str, Any]:
    """Return what the daemon is told; nothing where training begins from scratch.

    Raises:
        NotFoundError: there is no such folder.
        UsageError: it is no whole model.
        JupiterError: it is the id of a model that can't be fetched.
    """
    if wanted == SCRATCH:
        return {}
    return _checked(model_arguments(wanted), wanted)


def planned_init(wanted: str) -> dict[str, Any]:
    """Return what the daemon is told for a plan: no model is fetched for a look.

    Raises:
        NotFoundError: there is no such folder.
        UsageError: it is no whole model.
    """
    found = None if wanted == SCRATCH else kept_arguments(wanted)
    return {} if found is None else _checked(found, wanted)


def _checked(found: dict[str, Any], wanted: str) -> dict[str, Any]:
    if (folder := found.get("weights_folder")) is not None:
        _check_that_it_is_whole(Path(folder), wanted)
    return {"init": found}


def _check_that_it_is_whole(folder: Path, wanted: str) -> None:
    names = {path.name for path in folder.iterdir()}
    index = folder / "model.safetensors.index.json"
    text = index.read_text(encoding="utf-8") if index.is_file() else ""
    if missing := missing_files(names, text):
        raise UsageError(f"{wanted} is no whole model: it lacks {', '.join(missing)}", HINT)
