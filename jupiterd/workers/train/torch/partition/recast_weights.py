"""Keeps no copies of weights in 16 bits for the backward pass: they are made again there.

Owns that trade, where weights are cut and matrices are multiplied in less than fp32. Autograd would
keep what each matrix was cast to, which would be a copy of the whole model on every rank. Doesn't
know when weights are here: a layer's are before its backward pass (`layer_hooks`).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

_TRANSPOSED, _CAST, _LEAF = "TBackward0", "ToCopyBackward0", "torch::autograd::AccumulateGrad"


class Cast(NamedTuple):
    """What stands for a weight that was cast."""

    weight: Tensor
    kind: torch.dtype
    is_transposed: bool


def recast_weights() -> saved_tensors_hooks:
    """Return a context for forward passes."""
    return saved_tensors_hooks(_saved, _used)


def _saved(tensor: Tensor) -> Tensor | Cast:
    node: Any = tensor.grad_fn
    is_transposed = _is(node, _TRANSPOSED)
    if is_transposed:
        node = node.next_functions[0][0]
    if not _is(node, _CAST):
        return tensor
    leaf = node.next_functions[0][0]
    return Cast(leaf.variable, tensor.dtype, is_transposed) if _is(leaf, _LEAF) else tensor


def _used(saved: Tensor | Cast) -> Tensor:
    if isinstance(saved, Tensor):
        return saved
    cast = saved.weight.detach().to(saved.kind)
    return cast.t() if saved.is_transposed else cast


def _is(node: Any, name: str) -> bool:  # noqa: ANN401 - torch's
    return node is not None and node.name() == name
