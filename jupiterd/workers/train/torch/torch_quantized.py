"""Frozen matrices of a torch model, quantized by bitsandbytes while they are read, one by one.

Owns which are, and the product with one. Doesn't know files, adapters or training. 4 bits are NF4
with 64 numbers of a row to a scale (Dettmers et al. 2023), 8 bits have a scale for each row. They
are always quantized on the CPU, so all ranks have the same bits, whatever they multiply in. What is
multiplied are the numbers that the bits stand for: they are made for each product, and forgotten.
"""

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import numpy as np
import torch
from blake3 import blake3
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from jupiterd.cycle.training.adapters.adapter import is_in_layer
from jupiterd.cycle.training.adapters.adapter_size import GROUP, is_grouped
from jupiterd.cycle.training.adapters.quantized_base import no_bitsandbytes
from jupiterd.workers.train.architectures.skeleton import MATRICES, matrix_size

_WEIGHT: Final = ".weight"
_KIND: Final = "nf4"
_NUMBERS_AT_A_TIME: Final = 1 << 22
"""That are quantized: bitsandbytes has about five times their memory beside them meanwhile."""


class QuantizedMatrix(nn.Module):
    """A module that multiplies with a frozen matrix, of which only the bits are there."""

    packed: Tensor
    """uint8 [outputs x inputs / 2, 1], or int8 [outputs, inputs]."""
    scales: Tensor
    """fp32: one for each group of a row, or for each row."""

    def __init__(self, like: nn.Module, bits: int) -> None:
        """Make one in the place of another, whose bias it takes; it has no numbers yet."""
        super().__init__()
        self.size, self._bits = matrix_size(like), bits
        self._lies_turned = isinstance(like, Conv1D)
        self.bias = cast("nn.Parameter | None", like.bias)
        for name in ("packed", "scales"):
            self.register_buffer(name, torch.empty(0), persistent=False)

    def fill(self, values: NDArray[np.float32]) -> None:
        """Quantize the numbers of a file, and hold the bits."""
        matrix = torch.from_numpy(np.asarray(values))
        matrix = matrix.t() if self._lies_turned else matrix
        rows = max(1, _NUMBERS_AT_A_TIME // matrix.shape[1])
        parts = [_quantized(each, self._bits) for each in matrix.split(rows)]
        device = self.packed.device
        packed, scales = (torch.cat(each) for each in zip(*parts, strict=True))
        self.packed, self.scales = packed.to(device), scales.to(device)

    def numbers(self, kind: torch.dtype) -> Tensor:
        """Return the numbers that the bits stand for, [outputs, inputs]."""
        return dequantized(self.packed, self.scales, self.size, self._bits, kind)

    def forward(self, x: Tensor) -> Tensor:
        """Return W x + b; x: [..., inputs]."""
        kind, device = x.dtype, x.device.type
        if torch.is_autocast_enabled(device):
            kind = torch.get_autocast_dtype(device)
        bias = None if self.bias is None else self.bias.to(kind)
        given = (self.packed, self.scales, self.size, self._bits)
        return cast("Tensor", _Product.apply(x.to(kind), bias, *given))


class _Product(torch.autograd.Function):
    """The product with a quantized matrix; the way back makes the numbers once more."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - torch's way to call it
        ctx: Any,  # noqa: ANN401 - torch's
        x: Tensor,
        bias: Tensor | None,
        packed: Tensor,
        scales: Tensor,
        size: tuple[int, int],
        bits: int,
    ) -> Tensor:
        """x: [..., inputs], in what is computed in; bias: frozen; size: outputs and inputs."""
        ctx.save_for_backward(packed, scales)
        ctx.size, ctx.bits = size, bits
        return functional.linear(x, dequantized(packed, scales, size, bits, x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (gradient,), (packed, scales) = grad_outputs, ctx.saved_tensors
        matrix = dequantized(packed, scales, ctx.size, ctx.bits, gradient.dtype)
        return gradient @ matrix, None, None, None, None, None


class QuantizedMatrices:
    """Those of one model, by their paths; none, where bits are 0."""

    def __init__(self, model: nn.Module, bits: int) -> None:
        """Put them into a model, empty, in the place of all matrices in layers that can be.

        What else was made with `no_matrices` gets its memory.

        Raises:
            MissingExtraError: bitsandbytes isn't there, or doesn't load.
        """
        self._found: dict[str, QuantizedMatrix] = {}
        if not bits:
            return
        _load_bitsandbytes()
        self._hash = blake3()
        for path, module in list(model.named_modules()):
            if isinstance(module, MATRICES) and _is_quantized(path, module):
                parent, _, name = path.rpartition(".")
                self._found[path] = QuantizedMatrix(module, bits)
                setattr(model.get_submodule(parent), name, self._found[path])
        _give_memory(model)

    def names(self) -> Iterator[str]:
        """Yield the names of the tensors that they are filled by, as transformers has them."""
        return (f"{path}{_WEIGHT}" for path in self._found)

    def put(self, name: str, values: NDArray[np.float32]) -> None:
        """Quantize a tensor of the model's files into its place."""
        matrix = self._found[name.removesuffix(_WEIGHT)]
        matrix.fill(values)
        self._hash.update(name.encode())
        for held in (matrix.packed, matrix.scales):
            self._hash.update(held.cpu().contiguous().view(torch.uint8).numpy().tobytes())

    def digest(self) -> str:
        """Return a hash of all bits in hex digits; empty where nothing is quantized."""
        return self._hash.hexdigest() if self._found else ""


def dequantized(
    packed: Tensor, scales: Tensor, size: tuple[int, int], bits: int, kind: torch.dtype
) -> Tensor:
    """Return the numbers that bits stand for, [outputs, inputs], in the precision asked for."""
    if bits == 4:
        ops: Any = torch.ops.bitsandbytes
        return ops.dequantize_4bit(packed, scales, GROUP, _KIND, size, kind)
    return packed.to(kind).mul_((scales / 127.0).unsqueeze(1))


@contextmanager
def no_matrices() -> Generator[None]:
    """Let models that are made meanwhile have no memory for matrices: they will be quantized."""
    kinds: tuple[Any, ...] = MATRICES
    made = [kind.__init__ for kind in kinds]
    for kind, init in zip(kinds, made, strict=True):
        kind.__init__ = _without_memory(init)
    try:
        yield
    finally:
        for kind, init in zip(kinds, made, strict=True):
            kind.__init__ = init


def _give_memory(model: nn.Module) -> None:
    for module in model.modules():
        for name, each in module.named_parameters(recurse=False):
            if each.is_meta:
                setattr(module, name, nn.Parameter(torch.empty_like(each, device="cpu")))


def _without_memory(init: Any) -> Any:  # noqa: ANN401 - of any module
    def made(self: nn.Module, *given: Any, **named: Any) -> None:
        with torch.device("meta"):
            init(self, *given, **named)

    return made


def _is_quantized(path: str, module: nn.Module) -> bool:
    return is_in_layer(path) and is_grouped(matrix_size(module)[1])


def _quantized(rows: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return the bits and scales of some rows of a matrix."""
    ops: Any = torch.ops.bitsandbytes
    if bits == 4:
        return ops.quantize_4bit(rows.contiguous(), GROUP, _KIND, torch.uint8)
    packed, scales, _ = ops.int8_vectorwise_quant(rows.contiguous())
    return packed, scales


def _load_bitsandbytes() -> None:
    # It would tell of a faster product for one token at a time, which training has no use for.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        import bitsandbytes  # noqa: F401 # pyright: ignore[reportMissingImports, reportUnusedImport]
    except (ImportError, OSError, RuntimeError) as error:
        raise no_bitsandbytes() from error
