"""mlx-lm's layer of an adapter, with dropout of its inputs and DoRA's magnitude.

Owns what the layer computes; without either mlx-lm's own is used. Which inputs are left out is
`dropout_mask`'s: mlx-lm draws its own from MLX's generator, which knows neither sequences nor other
ranks. Its DoRA makes a second matrix of W's size in each pass, and has the magnitude in bf16 where
it computes so; here lengths are sums of squares, and the magnitude stays in fp32.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.tuner.lora import LoRALinear

from jupiterd.workers.train.dropout_mask import mask_columns, threshold_of

SMALLEST_SQUARE = 1e-30
"""Of a row's length: rows of zeros stay what they are."""


class TokenKeys:
    """The keys of the tokens that pass through a model now, for all of its layers."""

    def __init__(self) -> None:
        self.keys: mx.array | None = None
        """uint32[sequences, tokens]; None: nothing is left out."""

    @contextmanager
    def of(self, keys: mx.array | None) -> Generator[None]:
        """Leave out what these tokens' keys say."""
        self.keys = keys
        try:
            yield
        finally:
            self.keys = None


class Dropout:
    """What one layer leaves out of its inputs."""

    def __init__(self, module: str, inputs: int, share: float, keys: TokenKeys) -> None:
        """module: its path; share: of the inputs that are left out; keys: of the tokens."""
        columns = mask_columns(module, inputs)
        self._factors, self._addends = mx.array(columns.factors), mx.array(columns.addends)
        self._threshold = mx.array(threshold_of(share), dtype=mx.uint32)
        self._keys = keys
        self._scale = 1 / (1 - share)

    def product(self, x: mx.array, first: mx.array) -> mx.array:
        """Return inputs, less what is left out, times a factor.

        x: [sequences, tokens, inputs]; first: [inputs, rank]; returned: [sequences, tokens, rank]
        """
        if (keys := self._keys.keys) is None:
            return x @ first

        def product(x: mx.array, first: mx.array) -> mx.array:
            kept = keys[..., None] * self._factors + self._addends >= self._threshold
            return (x * kept.astype(x.dtype)) @ first

        # The mask isn't kept for the backward pass: computing it again costs less than the memory.
        again: Any = mx.checkpoint(product)
        return again(x, first) * self._scale


class AdaptedLinear(LoRALinear):
    """A frozen layer, plus the product of two small factors."""

    linear: Any
    m: mx.array
    _out: Dropout | None
    _is_dora: bool
    _measured: tuple[Any, mx.array] | None

    @staticmethod
    def beside(
        linear: Any,  # noqa: ANN401 - a linear layer of MLX, quantized or not
        rank: int,
        scale: float,
        dropout: Dropout | None,
        *,
        is_dora: bool,
    ) -> "AdaptedLinear":
        """Return the layer to put in a frozen one's place."""
        outputs, inputs = linear.weight.shape
        if isinstance(linear, nn.QuantizedLinear):
            inputs = inputs * 32 // linear.bits
        layer = AdaptedLinear(inputs, outputs, r=rank, scale=scale)
        layer.linear = linear
        layer._out = dropout
        layer._is_dora = is_dora
        layer._measured = None
        return layer

    def __call__(self, x: mx.array) -> mx.array:
        """Return W x + b + scale B A x, of DoRA with its own lengths of rows; x: [..., inputs]."""
        small = x @ self.lora_a if self._out is None else self._out.product(x, self.lora_a)
        found = self.linear(x) + (self.scale * (small @ self.lora_b)).astype(x.dtype)
        return self._with_lengths(found) if self._is_dora else found

    def _with_lengths(self, found: mx.array) -> mx.array:
        """Return products with rows that are as long as the magnitude says; a bias stays."""
        share = self.m / self._lengths()
        scaled = (found * share).astype(found.dtype)
        if "bias" not in self.linear:
            return scaled
        return scaled + ((1 - share) * self.linear.bias).astype(found.dtype)

    def _lengths(self) -> mx.array:
        """Return the lengths of the rows of W + scale B A, which learn nothing (DoRA, 4.3)."""
        first, second = mx.stop_gradient(self.lora_a.T), mx.stop_gradient(self.lora_b.T)
        crossed = self.linear(first)
        if "bias" in self.linear:
            crossed = crossed - self.linear.bias
        crossed, first, second = (each.astype(mx.float32) for each in (crossed, first, second))
        sums = 2 * self.scale * crossed.T + self.scale**2 * (second @ (first @ first.T))
        squares = self._own_squares() + (second * sums).sum(axis=1)
        return mx.sqrt(mx.maximum(squares, SMALLEST_SQUARE))

    def _own_squares(self) -> mx.array:
        """Return the squares of the frozen rows' lengths, computed once for each matrix."""
        weight = self.linear.weight
        if self._measured is None or self._measured[0] is not weight:
            whole = self._whole().astype(mx.float32)
            squares = mx.square(whole).sum(axis=1)
            mx.eval(squares)
            self._measured = (weight, squares)
        return self._measured[1]

    def _whole(self) -> mx.array:
        linear = self.linear
        if not isinstance(linear, nn.QuantizedLinear):
            return linear.weight
        return mx.dequantize(
            linear.weight,
            linear.scales,
            linear.biases,
            group_size=linear.group_size,
            bits=linear.bits,
            mode=linear.mode,
        )
