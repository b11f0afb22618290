"""Frozen matrices of a model of mlx-lm, quantized while they are read, one after another.

Owns which are, and their place. The layers are MLX's own (affine, groups of 64 in a row). Doesn't
know files or adapters. What is quantized is rounded to bf16 first, and always on the CPU, so all
ranks have the same bits, whatever they multiply in.
"""

from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np
from blake3 import blake3
from mlx import nn
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter import is_in_layer
from jupiterd.cycle.training.adapters.adapter_size import GROUP, is_grouped
from jupiterd.errors import UsageError
from jupiterd.workers.packed_tensors import Packed
from jupiterd.workers.train.architectures.mlx_module import MlxModule

_WEIGHT: Final = ".weight"


class QuantizedMatrices:
    """The matrices of one model that are quantized; none, where bits are 0."""

    def __init__(
        self, module: MlxModule, bits: int, *, in_bf16: bool, are_given: bool = False
    ) -> None:
        """Find them; are_given: the model's own files may hold them packed.

        Raises:
            UsageError: the model's matrices lie the other way round in its files.
        """
        self._inner, self._bits = module.inner, bits
        self._kind = mx.bfloat16 if in_bf16 else mx.float32
        is_asked = bits > 0 or are_given
        paths = [path for path in module.matrices if is_in_layer(path)] if is_asked else []
        self._places = module.places_of(paths)
        if turned := next((path for path in paths if path in module.turned), None):
            raise UsageError(
                f"--quantize: the files of this model have {turned} the other way round",
                "leave --quantize out for this architecture",
            )
        self._hash = blake3()
        self.places: set[str] = set()
        """Paths of those that are quantized by now, as mlx-lm has them."""

    def takes(self, name: str) -> bool:
        """Say whether a tensor, by transformers' name, is a matrix that is quantized."""
        is_placed = self._bits > 0 and self.has_place(name)
        return is_placed and self._is_grouped(name.removesuffix(_WEIGHT))

    def has_place(self, name: str) -> bool:
        """Say whether a tensor, by transformers' name, is a matrix in a layer."""
        return name.endswith(_WEIGHT) and name.removesuffix(_WEIGHT) in self._places

    def put(self, name: str, values: NDArray[np.float32]) -> mx.array:
        """Quantize a matrix into its place; return what stands for it among other weights."""
        rounded = mx.array(values).astype(mx.bfloat16).astype(mx.float32)
        found = mx.quantize(rounded, group_size=GROUP, bits=self._bits, stream=mx.cpu)
        self._hold(name, found, GROUP, self._bits)
        return mx.broadcast_to(mx.zeros(()), values.shape)

    def put_packed(self, name: str, packed: Packed) -> mx.array:
        """Put a matrix that its folder holds so into its place; returns as `put`."""
        found = tuple(map(mx.array, (packed.words, packed.scales, packed.biases)))
        self._hold(name, found, packed.kept.group, packed.kept.bits)
        columns = packed.scales.shape[1] * packed.kept.group
        return mx.broadcast_to(mx.zeros(()), (packed.words.shape[0], columns))

    def _hold(self, name: str, found: Sequence[mx.array], group: int, bits: int) -> None:
        place = self._places[name.removesuffix(_WEIGHT)]
        held = _at(self._inner, place)
        layer = self._layer(found, group, bits, bias=held.get("bias"))
        parent, _, last = place.rpartition(".")
        setattr(_at(self._inner, parent), last, layer)
        self.places.add(place)
        self._count(name, layer)

    def _count(self, name: str, layer: Any) -> None:  # noqa: ANN401 - attributes of mlx-lm's layer
        """Let the hash hear of a matrix; scales are rounded to bf16, so fp32 says them exactly."""
        self._hash.update(name.encode())
        self._hash.update(np.array(layer.weight).tobytes())
        for held in (layer.scales, layer.biases):
            self._hash.update(np.array(held.astype(mx.float32)).tobytes())

    def digest(self) -> str:
        """Return a hash of all bits in hex digits; empty where nothing is quantized."""
        return self._hash.hexdigest() if self.places else ""

    def _is_grouped(self, path: str) -> bool:
        return is_grouped(_at(self._inner, self._places[path]).weight.shape[-1])

    def _layer(
        self, found: Sequence[mx.array], group: int, bits: int, bias: mx.array | None
    ) -> nn.QuantizedLinear:
        layer: Any = nn.QuantizedLinear(group, 1, bias=False, group_size=group, bits=bits)
        layer.weight = found[0]
        layer.scales, layer.biases = (
            each.astype(mx.bfloat16).astype(self._kind) for each in found[1:]
        )
        if bias is not None:
            layer.bias = bias
        mx.eval(layer.parameters())
        return layer


def _at(module: Any, path: str) -> Any:  # noqa: ANN401 - modules of mlx-lm, and lists of them
    for part in path.split("."):
        module = module[int(part)] if part.isdecimal() else getattr(module, part)
    return module
