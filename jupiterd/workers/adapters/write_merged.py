"""Writes an adapter and its base as one ordinary model folder.

    python -m jupiterd.workers.adapters.write_merged JOINED FOLDER

Owns the sum of both. Doesn't know where either came from; JOINED has both
(`jupiterd.adapter_folder`).
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from jupiterd.adapter_folder import (
    ADAPTER_CONFIG,
    ADAPTER_FILE,
    ADAPTER_FILE_OF_MLX,
    base_beside,
)
from jupiterd.cycle.training.adapters.given_quantized import given_bits
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.program_status import status_of
from jupiterd.workers.tokens.marks import read_object

_OF_THE_ADAPTER = frozenset({ADAPTER_CONFIG, ADAPTER_FILE, ADAPTER_FILE_OF_MLX})


def write_merged(joined: Path, to: Path) -> None:
    """Write the model in the precision that its base has; a folder that isn't there yet.

    Raises:
        CorruptArtifactError: one of both can't be read, or they don't fit each other.
        UsageError: the base comes quantized.
    """
    base = base_beside(joined)
    if base is None:
        raise CorruptArtifactError(f"{joined.name} has no base beside it")
    model = _base_model(base)
    from jupiterd.workers.adapters.torch_merge import merge

    merge(model, joined)
    model.save_pretrained(to)
    for path in joined.iterdir():  # those that came along, such as how it is talked to
        if path.is_file() and path.name not in _OF_THE_ADAPTER:
            shutil.copyfile(path, to / path.name)


def _base_model(base: Path) -> Any:  # noqa: ANN401 - transformers'
    if given_bits(read_object(base / "config.json")) is not None:
        raise UsageError(
            "the base is quantized for MLX, and no whole model is written of such weights",
            "leave --merge out: mlx-lm takes base and adapter, by --adapter-path",
        )
    import transformers

    transformers.utils.logging.disable_progress_bar()
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(
            base, dtype="auto", local_files_only=True, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise CorruptArtifactError(f"the base in {base.name} can't be read: {error}") from error


if __name__ == "__main__":
    sys.exit(status_of(write_merged))
