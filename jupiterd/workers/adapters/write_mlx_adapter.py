"""Writes an adapter as mlx-lm's `--adapter-path` wants it.

    python -m jupiterd.workers.adapters.write_mlx_adapter ADAPTER FOLDER

Owns that form: mlx-lm's factors lie the other way round, and its scale is the whole one.

    adapter_config.json     {"fine_tune_type": "lora", "num_layers": 30, "lora_parameters": {...}}
    adapters.safetensors    MODULE.lora_a [inputs, rank], MODULE.lora_b [rank, outputs], and of
                            "dora" MODULE.m [outputs]
"""

import json
import sys
from pathlib import Path
from typing import Final

import numpy as np

from jupiterd.cycle.training.adapters.adapter import place_in_layer
from jupiterd.errors import UsageError
from jupiterd.workers.adapters.adapter_tensors import AdapterTensors
from jupiterd.workers.program_status import status_of
from jupiterd.workers.tensor_file import save_tensors

_SAME_NAMES: Final = "model.layers."
"""So begin the paths of modules that mlx-lm calls as transformers does."""


def write_mlx_adapter(adapter: Path, to: Path) -> None:
    """Write the folder, which isn't there yet.

    Raises:
        CorruptArtifactError: the adapter can't be read.
        UsageError: mlx-lm calls the modules otherwise.
    """
    tensors = AdapterTensors(adapter)
    if odd := [path for path in tensors.modules if not path.startswith(_SAME_NAMES)]:
        reason = f"mlx-lm has another name for {odd[0]}"
        raise UsageError(reason, "export it merged: --merge --format mlx")
    places = [place_in_layer(path) for path in tensors.modules]
    said = {
        "fine_tune_type": "dora" if tensors.options.dora else "lora",
        "num_layers": len({number for number, _ in places}),
        "lora_parameters": {
            "rank": tensors.rank,
            "scale": tensors.scale,
            "dropout": tensors.options.dropout,
            "keys": sorted({place for _, place in places}),
        },
    }
    to.mkdir()
    (to / "adapter_config.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    found = {}
    for path, first, second in tensors.factors():
        found[f"{path}.lora_a"] = np.ascontiguousarray(first.T)
        found[f"{path}.lora_b"] = np.ascontiguousarray(second.T)
        if (magnitude := tensors.magnitude(path)) is not None:
            found[f"{path}.m"] = magnitude
    save_tensors(found, to / "adapters.safetensors")


if __name__ == "__main__":
    sys.exit(status_of(write_mlx_adapter))
