"""The tensors of an adapter, and what they add to the matrices of its base.

Owns reading the folder. Doesn't know engines: what is added is told by the module's path.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jupiterd.adapter_folder import ADAPTER_CONFIG, ADAPTER_FILE
from jupiterd.cycle.training.adapters.adapter import FACTORS, module_of, tensor_name
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.tensor_file import load_tensors


class AdapterTensors:
    """Those of one adapter."""

    def __init__(self, folder: Path) -> None:
        """Read them; raises CorruptArtifactError where they aren't whole."""
        self._tensors = load_tensors(folder / ADAPTER_FILE)
        self.rank, self.scale = _rank_and_scale(folder)
        self.modules = tuple(dict.fromkeys(module_of(name)[0] for name in self._tensors))
        """The paths of the modules that have one."""
        wanted = {tensor_name(module, factor) for module in self.modules for factor in FACTORS}
        if odd := wanted ^ set(self._tensors):
            raise CorruptArtifactError(f"{ADAPTER_FILE} of {folder.name}: {min(odd)} stands alone")

    def additions(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield each module with what its matrix gains, [outputs, inputs]."""
        for module, first, second in self.factors():
            yield module, (second @ first) * np.float32(self.scale)

    def factors(self) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.float32]]]:
        """Yield each module with its factors, [rank, inputs] and [outputs, rank]."""
        for module in self.modules:
            first, second = (self._tensors[tensor_name(module, factor)] for factor in FACTORS)
            yield module, first, second


def _rank_and_scale(folder: Path) -> tuple[int, float]:
    try:
        said: dict[str, Any] = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        rank, alpha = int(said["r"]), float(said["lora_alpha"])
        return rank, alpha / (math.sqrt(rank) if said.get("use_rslora") else rank)
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CorruptArtifactError(f"{ADAPTER_CONFIG} of {folder.name} can't be read") from error
