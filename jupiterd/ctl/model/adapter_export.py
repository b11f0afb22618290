"""An adapter in the forms that other programs read: alone, or merged with its base.

Owns having a process do it, since tensors are none of this program's business. Doesn't know the
forms.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from jupiterd.adapter_folder import ADAPTER_FILE, base_beside, holds_adapter
from jupiterd.ctl.model.evaluated_model import EvaluatedModel
from jupiterd.ctl.sources.adapter_model import check_base_is_used, with_base
from jupiterd.errors import UsageError, WorkFailedError
from jupiterd.formats import printable
from jupiterd.path_text import path_of

MERGING: Final = "jupiterd.workers.adapters.write_merged"
FOR_MLX: Final = "jupiterd.workers.adapters.write_mlx_adapter"
WRITING_S: Final = 3600.0


def is_adapter(stored: Path) -> bool:
    """Say whether a model's files are an adapter and its base."""
    return base_beside(stored) is not None


def adapter_document(text: str, base: str | None, state_dir: Path) -> dict[str, Any] | None:
    """Return what is known of an adapter's folder, as of a model of the cluster; None: it is none.

    base: what it stands beside; None: it says which

    Raises:
        NotFoundError: nobody knows its base.
        UsageError: it can't be used, or a base is named and there is no adapter.
    """
    check_base_is_used([text], base)
    if not holds_adapter(folder := path_of(text)):
        return None
    joined = with_base(folder, base, state_dir)
    content = EvaluatedModel(folder.name, "", joined).content
    return {"id": content, "name": joined.name, "kind": "adapter", "files_at": str(joined)}


def check_form(stored: Path, form: str, *, merges: bool) -> None:
    """Raise UsageError where a form can't hold what there is."""
    if form == "hf" and is_adapter(stored) and not merges and not (stored / ADAPTER_FILE).is_file():
        raise UsageError(
            "this adapter has mlx-lm's form, which peft doesn't read",
            "add --merge for one whole model, or --format mlx",
        )
    if merges and not is_adapter(stored):
        raise UsageError("there is nothing to merge: the model is whole", "leave out --merge")
    if form == "gguf" and is_adapter(stored) and not merges:
        raise UsageError(
            "this model is an adapter beside a base, and a GGUF file is a whole model",
            "add --merge",
        )


@contextmanager
def merged(stored: Path, near: Path) -> Generator[Path]:
    """Give a folder of both merged, for as long as the context lasts.

    near: a folder on the disk that is to hold it

    Raises:
        WorkFailedError: they can't be merged; the message says why.
    """
    near.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=near.parent, prefix=f".{near.name}.merged-") as place:
        folder = Path(place) / "model"
        run(MERGING, stored, folder)
        yield folder


def run(program: str, stored: Path, folder: Path) -> None:
    """Have a program write a folder; raises WorkFailedError with its last line where it can't."""
    command = [sys.executable, "-P", "-m", program, str(stored), str(folder)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=WRITING_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise WorkFailedError(f"it wasn't written within {WRITING_S:.0f} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it says nothing"]
        raise WorkFailedError(f"it can't be written: {printable(lines[-1])[:300]}")
