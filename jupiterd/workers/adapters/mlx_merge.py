"""An adapter added to the matrices of a model of mlx-lm, in memory.

Owns where each change goes. Doesn't know loading, or what the model is for.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten, tree_unflatten

from jupiterd.cycle.training.adapters.adapter import is_in_layer, place_in_layer
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.adapters.adapter_tensors import AdapterTensors


def merge(model: Any, folder: Path) -> None:  # noqa: ANN401 - mlx-lm's
    """Add the adapter in a folder; in fp32, whatever the weights are kept in.

    Raises:
        CorruptArtifactError: the folder isn't whole, or the model has no such module.
        UsageError: mlx-lm has a module in other pieces.
    """
    tensors = AdapterTensors(folder)
    weights: dict[str, mx.array] = dict(tree_flatten(model.parameters()))
    places = _places(tensors.modules, weights.keys(), folder)
    for path, change in tensors.changes():
        name = f"{places[path]}.weight"
        weight = _whole(model, places[path], weights)
        if weight.shape != change.added.shape:
            wanted, given = list(weight.shape), list(change.added.shape)
            raise CorruptArtifactError(f"{path} of the base is {wanted}, its adapter {given}")
        found = change.of(np.array(weight.astype(mx.float32)))
        merged = mx.array(found).astype(weight.dtype)
        model.update(tree_unflatten([(name, merged)]))
    mx.eval(model.parameters())


def _whole(model: Any, place: str, weights: Mapping[str, mx.array]) -> mx.array:  # noqa: ANN401
    """Return a module's matrix; one that comes quantized is made whole, to take the addition."""
    weight = weights[f"{place}.weight"]
    if f"{place}.scales" not in weights:
        return weight
    held: Any = dict(model.named_modules())[place]
    whole = mx.dequantize(
        held.weight, held.scales, held.biases, group_size=held.group_size, bits=held.bits
    )
    outputs, inputs = whole.shape
    layer: Any = nn.Linear(inputs, outputs, bias="bias" in held)
    layer.weight = whole
    if "bias" in held:
        layer.bias = held.bias
    model.update_modules(tree_unflatten([(place, layer)]))
    return whole


def _places(modules: Sequence[str], known: Collection[str], folder: Path) -> dict[str, str]:
    """Return where mlx-lm has each module: in the same layer, at the same place within it."""
    theirs = {
        place_in_layer(name): name.removesuffix(".weight")
        for name in known
        if name.endswith(".weight") and is_in_layer(name)
    }
    places = {path: theirs.get(place_in_layer(f"{path}.weight"), "") for path in modules}
    if lacking := [path for path, place in places.items() if not place]:
        raise UsageError(
            f"MLX has no {lacking[0]} of its own in {folder.name}", "export the model with --merge"
        )
    return places
