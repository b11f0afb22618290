"""An adapter added to the matrices of a model of transformers, in memory.

Owns where each change goes. Doesn't know loading, or what the model is for.
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
    for path, change in AdapterTensors(folder).changes():
        try:
            module = model.get_submodule(path)
            weight = module.weight
        except AttributeError as error:
            raise CorruptArtifactError(f"the base of {folder.name} has no {path}") from error
        is_turned = isinstance(module, Conv1D)
        size = change.added.shape[::-1] if is_turned else change.added.shape
        if size != weight.shape:
            wanted, given = list(weight.shape), list(size)
            raise CorruptArtifactError(f"{path} of the base is {wanted}, its adapter {given}")
        matrix = weight.detach().float().cpu().numpy()
        found = change.of(matrix.T if is_turned else matrix)
        weight.copy_(torch.from_numpy(found.T if is_turned else found))
