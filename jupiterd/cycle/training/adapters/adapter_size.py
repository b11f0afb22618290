"""How many numbers a training learns: all of a model's, or those of an adapter beside it.

Owns counting an adapter's by the model's shape. Pure. Doesn't know tensors or devices.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cycle.training.adapters.adapter import ALL, AdapterOptions, adapter_shapes
from jupiterd.cycle.training.adapters.given_quantized import GivenBits, given_bits
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.cycle.training.tensor_shapes import expected_tensors

GROUP: Final = 64
"""Numbers of a row that share a scale, as mlx-lm and bitsandbytes have it."""

_TORCH: Final = "torch"
_MATRIX, _IS_IN_LAYER = 2, (".layers.", ".h.", ".blocks.")
_LIE_TURNED: Final = frozenset({"gpt2"})
"""Architectures whose files hold matrices as [inputs, outputs]."""


def trained_parameters(shape: ModelShape, options: EngineOptions) -> int:
    """Return how many numbers are learned.

    Raises:
        UsageError: the model has none of the matrices that an adapter is asked for.
    """
    adapter = options.adapter
    return parameter_count(shape) if adapter is None else adapter_parameters(shape, adapter)


def adapter_parameters(shape: ModelShape, options: AdapterOptions) -> int:
    """Return how many numbers an adapter has; raises as `trained_parameters`."""
    return sum(math.prod(size) for size in shapes_of_adapter(shape, options).values())


def shapes_of_adapter(shape: ModelShape, options: AdapterOptions) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an adapter's tensors by their names; raises as `trained_parameters`.

    Where names of modules are asked for and aren't known of the architecture, all are counted: the
    machines that train it know.
    """
    if expected_tensors(shape.config) is None and shape.config and not options.is_by_part:
        options = options.model_copy(update={"targets": ALL})
    return adapter_shapes(matrices_of(shape), options)


def frozen_bytes(shape: ModelShape, options: AdapterOptions, each: int, engine: str) -> int:
    """Return what the weights beside an adapter take.

    Quantized matrices have a scale and a bias for each group of numbers in a row on MLX, and on
    torch a scale in fp32, of 8 bits one for a row; what isn't in a layer, or has rows that can't be
    grouped, is kept as it is. A model that comes quantized is kept as it comes.

    each: bytes of a number that isn't quantized
    """
    whole = each * parameter_count(shape)
    kept = given_bits(shape.config) or GivenBits(options.bits, GROUP)
    if not kept.bits:
        return whole
    sizes = _quantized(shape, kept.group)
    grouped = sum(rows * columns for rows, columns in sizes)
    if engine != _TORCH:
        scales = 2 * each * grouped // kept.group
    else:
        by_row = sum(rows for rows, _ in sizes)
        scales = 4 * (grouped // GROUP if options.bits == 4 else by_row)
    return whole - each * grouped + grouped * kept.bits // 8 + scales


def dequantized_bytes(shape: ModelShape, options: AdapterOptions, each: int, engine: str) -> int:
    """Return what the largest matrix takes while torch multiplies with it; MLX makes none.

    each: bytes of a number that is multiplied
    """
    if not options.bits or engine != _TORCH:
        return 0
    return each * max((rows * columns for rows, columns in _quantized(shape, GROUP)), default=0)


def _quantized(shape: ModelShape, group: int) -> list[tuple[int, int]]:
    sizes = matrices_of(shape).values()
    return [(rows, columns) for rows, columns in sizes if not columns % group]


def is_grouped(columns: int) -> bool:
    """Say whether a matrix with rows of so many numbers is quantized."""
    return columns % GROUP == 0


def known_matrices(config: Mapping[str, Any]) -> dict[str, tuple[int, int]] | None:
    """Return (outputs, inputs) of the matrices in a model's layers; None: they aren't known.

    config: the content of its config.json
    """
    if (known := expected_tensors(config)) is None:
        return None
    found = _matrices(known)
    if config.get("model_type") in _LIE_TURNED:
        return {path: (columns, rows) for path, (rows, columns) in found.items()}
    return found


def matrices_of(shape: ModelShape) -> dict[str, tuple[int, int]]:
    """Return the matrices of a model's layers: path of the module -> (outputs, inputs).

    Exact for the architectures of `tensor_shapes`, and for others as if they were Qwen3.
    """
    known = known_matrices(shape.config) if shape.config else None
    return _matrices(_as_qwen3(shape)) if known is None else known


def _matrices(tensors: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, int]]:
    return {
        name.removesuffix(".weight"): (size[0], size[1])
        for name, size in tensors.items()
        if len(size) == _MATRIX and any(part in name for part in _IS_IN_LAYER)
    }


def _as_qwen3(shape: ModelShape) -> Mapping[str, tuple[int, ...]]:
    hidden, queries, keys = (
        shape.hidden,
        shape.heads * shape.head_dim,
        shape.kv_heads * shape.head_dim,
    )
    each = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (shape.ff, hidden),
        "mlp.up_proj": (shape.ff, hidden),
        "mlp.down_proj": (hidden, shape.ff),
    }
    return {
        f"model.layers.{number}.{place}.weight": size
        for number in range(shape.layers)
        for place, size in each.items()
    }
