"""Dropout of an adapter's inputs on torch.

Owns the product of the first factor with what is left of them. Which are left out is
`dropout_mask`'s; here it is computed in int32, since torch has few operations on uint32. Nothing of
the mask is kept for the backward pass: computing it again costs less than the memory.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jupiterd.workers.train.dropout_mask import mask_columns, threshold_of

_HALF = 1 << 31
"""What lies between a number as uint32 and the same order as int32."""


class TokenKeys:
    """The keys of the tokens that pass through a model now, for all of its modules."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        """int32[tokens]; None: nothing is left out."""

    @contextmanager
    def of(self, keys: Tensor | None) -> Generator[None]:
        """Leave out what these tokens' keys say, in a pass and on its way back."""
        self.keys = keys
        try:
            yield
        finally:
            self.keys = None


class Dropout(nn.Module):
    """What one module leaves out of its inputs."""

    columns: Tensor
    """int32[2, inputs]: factors and addends."""

    def __init__(self, module: str, inputs: int, share: float, keys: TokenKeys) -> None:
        """module: its path; share: of the inputs that are left out; keys: of the tokens."""
        super().__init__()
        columns = mask_columns(module, inputs)
        both = np.stack([columns.factors, columns.addends + np.uint32(_HALF)])
        self.register_buffer("columns", as_int32(both), persistent=False)
        self._keys = keys
        self._threshold = threshold_of(share) - _HALF
        self._scale = 1 / (1 - share)

    @property
    def is_on(self) -> bool:
        """Say whether anything is left out now."""
        return self._keys.keys is not None

    def product(self, rows: Tensor, first: Tensor) -> Tensor:
        """Return rows, less what is left out, times a factor.

        rows: [tokens, inputs]; first: [rank, inputs]; returned: [tokens, rank]
        """
        keys, kind = self._keys.keys, _computed_in(rows)
        assert keys is not None  # noqa: S101 - `is_on` was asked before
        product: Any = _Product.apply
        found = product(rows.to(kind), first.to(kind), keys, self.columns, self._threshold)
        return found * self._scale


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's
        rows: Tensor,
        first: Tensor,
        keys: Tensor,
        columns: Tensor,
        threshold: int,
    ) -> Tensor:
        ctx.save_for_backward(rows, first, keys, columns)
        ctx.threshold = threshold
        return (rows * _is_kept(keys, columns, threshold)) @ first.t()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - torch's
        rows, first, keys, columns = ctx.saved_tensors
        (gradient,) = gradients
        kept = _is_kept(keys, columns, ctx.threshold)
        of_rows = (gradient @ first) * kept if ctx.needs_input_grad[0] else None
        of_first = gradient.t() @ (rows * kept) if ctx.needs_input_grad[1] else None
        return of_rows, of_first, None, None, None


def as_int32(words: NDArray[np.uint32]) -> Tensor:
    """Return words as torch computes with them: the same bits, and products that wrap around."""
    return torch.from_numpy(words.view(np.int32))


def _is_kept(keys: Tensor, columns: Tensor, threshold: int) -> Tensor:
    """Return which inputs stay, bool[tokens, inputs]."""
    factors, addends = columns
    return (keys[:, None] * factors).add_(addends) >= threshold


def _computed_in(rows: Tensor) -> torch.dtype:
    kind = rows.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else rows.dtype
