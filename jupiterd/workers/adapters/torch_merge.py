"""An adapter added to the matrices of a model of transformers, in memory.

Owns where each addition goes. Doesn't know loading, or what the model is for.
"""

from pathlib import Path
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.adapters.adapter_tensors import AdapterTensors


@torch.no_grad()
def merge(model: Any, folder: Path) -> None:  # noqa: ANN401 - transformers'
    """Add the adapter in a folder; in fp32, whatever the weights are kept in.

    Raises:
        CorruptArtifactError: the folder isn't whole, or the model has no such module.
    """
    for path, values in AdapterTensors(folder).additions():
        try:
            module = model.get_submodule(path)
            weight = module.weight
        except AttributeError as error:
            raise CorruptArtifactError(f"the base of {folder.name} has no {path}") from error
        added = torch.from_numpy(values.T if isinstance(module, Conv1D) else values)
        if added.shape != weight.shape:
            wanted, given = list(weight.shape), list(added.shape)
            raise CorruptArtifactError(f"{path} of the base is {wanted}, its adapter {given}")
        weight.copy_(weight.float() + added.to(weight.device))
