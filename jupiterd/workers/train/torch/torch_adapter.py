"""Low-rank adapters in a torch model: the modules that compute them, and their parameters.

Owns putting them in, and their names. Doesn't know training or files. Which modules get one is
`cycle.training.adapters.adapter`'s; the numbers are those of the package peft, which takes seconds
to import and would bring its own trainer with it.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from jupiterd.cycle.training.adapters.adapter import (
    FACTORS,
    AdapterOptions,
    adapted_modules,
    module_of,
    tensor_name,
)
from jupiterd.workers.train.architectures.skeleton import MATRICES, matrix_size
from jupiterd.workers.train.torch.torch_quantized import QuantizedMatrix


class AdaptedLinear(nn.Module):
    """A frozen module that multiplies with a matrix, plus the product of two small factors."""

    def __init__(self, base: nn.Module, options: AdapterOptions) -> None:
        super().__init__()
        outputs, inputs = base.size if isinstance(base, QuantizedMatrix) else matrix_size(base)
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(options.rank, inputs))
        self.lora_B = nn.Parameter(torch.empty(outputs, options.rank))
        self._scale = options.scale

    def forward(self, x: Tensor) -> Tensor:
        """Return W x + b + scale B A x; x: [..., inputs]."""
        rows = x.reshape(-1, x.shape[-1])
        small = functional.linear(rows, self.lora_A.to(x.dtype))
        found: Tensor = self.base(rows)
        # Added in its place: products and sums beside it would tear holes into a CPU's heap.
        found.addmm_(small.to(found.dtype), self.lora_B.to(found.dtype).t(), alpha=self._scale)
        return found.view(*x.shape[:-1], -1)


def adapt(model: nn.Module, options: AdapterOptions) -> dict[str, nn.Parameter]:
    """Freeze a model, put adapters into it, and return their parameters by peft's names.

    Raises:
        UsageError: the model has no such modules.
    """
    model.requires_grad_(requires_grad=False)
    kinds = (*MATRICES, QuantizedMatrix)
    matrices = {path: m for path, m in model.named_modules() if isinstance(m, kinds)}
    found: dict[str, nn.Parameter] = {}
    for path in adapted_modules(matrices, options):
        adapted = AdaptedLinear(matrices[path], options)
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, adapted)
        found |= {tensor_name(path, factor): getattr(adapted, factor) for factor in FACTORS}
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
