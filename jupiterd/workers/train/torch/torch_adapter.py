"""Low-rank adapters in a torch model: the modules that compute them, and their parameters.

Owns putting them in, and their names. Doesn't know training or files. Which modules get one is
`cycle.training.adapters.adapter`'s; the numbers are those of the package peft, which takes seconds
to import and would bring its own trainer with it.
"""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from jupiterd.cycle.training.adapters.adapter import (
    AdapterOptions,
    adapted_modules,
    module_of,
    tensor_name,
)
from jupiterd.workers.train.architectures.skeleton import MATRICES, matrix_size
from jupiterd.workers.train.torch.torch_dropout import Dropout, TokenKeys
from jupiterd.workers.train.torch.torch_quantized import QuantizedMatrix

SMALLEST_SQUARE = 1e-30
"""Of a row's length: rows of zeros stay what they are."""


class AdaptedLinear(nn.Module):
    """A frozen module that multiplies with a matrix, plus the product of two small factors."""

    def __init__(
        self, base: nn.Module, options: AdapterOptions, dropout: Dropout | None = None
    ) -> None:
        super().__init__()
        outputs, inputs = _size(base)
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(options.rank, inputs))
        self.lora_B = nn.Parameter(torch.empty(outputs, options.rank))
        self.lora_magnitude_vector = nn.Parameter(torch.empty(outputs)) if options.dora else None
        self._dropout = dropout
        self._scale = options.scale

    def forward(self, x: Tensor) -> Tensor:
        """Return W x + b + scale B A x, of DoRA with its own lengths of rows; x: [..., inputs]."""
        rows = x.reshape(-1, x.shape[-1])
        small = self._small(rows)
        found: Tensor = self.base(rows)
        # Added in its place: products and sums beside it would tear holes into a CPU's heap.
        found.addmm_(small.to(found.dtype), self.lora_B.to(found.dtype).t(), alpha=self._scale)
        if self.lora_magnitude_vector is not None:
            found = self._with_lengths(found, self.lora_magnitude_vector)
        return found.view(*x.shape[:-1], -1)

    def _small(self, rows: Tensor) -> Tensor:
        if self._dropout is not None and self._dropout.is_on:
            return self._dropout.product(rows, self.lora_A)
        return functional.linear(rows, self.lora_A.to(rows.dtype))

    def _with_lengths(self, found: Tensor, magnitude: Tensor) -> Tensor:
        """Return products with rows that are as long as the magnitude says; a bias stays."""
        share = magnitude / self._lengths(found.dtype)
        scaled = (found * share).to(found.dtype)
        bias = cast("Tensor | None", self.base.bias)
        return scaled if bias is None else scaled + ((1 - share) * bias).to(found.dtype)

    @torch.no_grad()
    def _lengths(self, kind: torch.dtype) -> Tensor:
        """Return the lengths of the rows of W + scale B A, which learn nothing (DoRA, section 4.3).

        By squares of sums, so that no second matrix of W's size is ever there.

        kind: what a quantized matrix is multiplied in
        """
        matrix = _matrix(self.base, kind)
        with torch.autocast(matrix.device.type, enabled=False):
            first, second, scale = self.lora_A, self.lora_B, self._scale
            crossed = (matrix @ first.to(matrix.dtype).t()).to(second.dtype)
            sums = 2 * scale * crossed + scale**2 * (second @ (first @ first.t()))
            own = torch.linalg.vector_norm(matrix, dim=1, dtype=second.dtype).square()
            return (own + (second * sums).sum(1)).clamp_min(SMALLEST_SQUARE).sqrt()


def _size(base: nn.Module) -> tuple[int, int]:
    return base.size if isinstance(base, QuantizedMatrix) else matrix_size(base)


def _matrix(base: nn.Module, kind: torch.dtype) -> Tensor:
    """Return a frozen matrix, [outputs, inputs]."""
    if isinstance(base, QuantizedMatrix):
        return base.numbers(kind)
    matrix = cast("Tensor", base.weight)
    return matrix.t() if isinstance(base, Conv1D) else matrix


def adapt(
    model: nn.Module, options: AdapterOptions, keys: TokenKeys | None = None
) -> dict[str, nn.Parameter]:
    """Freeze a model, put adapters into it, and return their parameters by peft's names.

    keys: of the tokens, which dropout follows from

    Raises:
        UsageError: the model has no such modules.
    """
    model.requires_grad_(requires_grad=False)
    kinds = (*MATRICES, QuantizedMatrix)
    matrices = {path: m for path, m in model.named_modules() if isinstance(m, kinds)}
    found: dict[str, nn.Parameter] = {}
    for path in adapted_modules(matrices, options):
        base, dropout = matrices[path], None
        if options.dropout and keys is not None:
            dropout = Dropout(path, _size(base)[1], options.dropout, keys)
        adapted = AdaptedLinear(base, options, dropout)
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, adapted)
        found |= {tensor_name(path, part): getattr(adapted, part) for part in options.parts}
    return found


def keep_in_bf16(frozen: Iterable[nn.Parameter]) -> None:
    """Keep frozen matrices and embeddings in bf16, one after another; vectors stay as they are."""
    for parameter in frozen:
        kind = torch.bfloat16 if parameter.ndim > 1 else parameter.dtype
        parameter.data = parameter.data.to(kind)


def frozen_as_everywhere(model: nn.Module) -> dict[str, Tensor]:
    """Return the frozen parameters in fp32, rounded as a device has them that multiplies in bf16.

    So logits can be compared that unlike devices have computed.
    """
    return {
        name: parameter.detach().to(torch.bfloat16).float()
        for name, parameter in model.named_parameters()
        if not parameter.requires_grad
    }


def parameter_path(name: str) -> str:
    """Return where the model has the parameter that an adapter's file calls so."""
    return ".".join(module_of(name))
