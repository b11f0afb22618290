"""What all layers of a model keep of a token until the backward pass, by what is trained, and how.

Pure. Owns adding up layers (`saved_activations`, `adapter_activations`). Doesn't know
weights, optimizers or logits.
"""

from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.training.activations.adapter_activations import Widths, adapted_layers
from jupiterd.cycle.training.activations.saved_activations import layer_bytes
from jupiterd.cycle.training.engine_options import DeviceAbilities, Precision
from jupiterd.cycle.training.plan import ModelShape, TrainPlan

_MLX: Final = "mlx"
_CUDA: Final = "cuda"


@dataclass(frozen=True)
class Activations:
    """Bytes of a token."""

    kept: int
    """From the forward pass on."""
    again: int = 0
    """Of the layer that is computed a second time, with gradient checkpointing."""


def activations(
    shape: ModelShape,
    plan: TrainPlan,
    precision: Precision,
    device: DeviceAbilities,
    *,
    checkpointing: bool,
) -> Activations:
    """Return what is kept of one token.

    Raises:
        UsageError: the model has none of the matrices that an adapter is asked for.
    """
    residual = _residual(plan, precision, device)
    layers, total, layer = _layers(shape, plan, precision, device, residual)
    # The hidden states at the end, and their gradient.
    last = 3 * residual * shape.hidden
    if not checkpointing:
        # Of few layers MLX has the gradients of one beside them; gradients of weights hide it.
        beside = layer if device.engine == _MLX and plan.options.adapter is not None else 0
        return Activations(last + total + beside)
    between = layers * residual * shape.hidden
    # MLX has the gradients of all that a layer computes beside what it computes.
    return Activations(last + between, 2 * layer if device.engine == _MLX else layer)


def _residual(plan: TrainPlan, precision: Precision, device: DeviceAbilities) -> int:
    """Return the bytes of a number that is added up: MLX's frozen weights decide that there."""
    is_frozen_in_bf16 = plan.options.adapter is not None and precision == "bf16"
    is_small = plan.options.weights == "bf16" or (is_frozen_in_bf16 and device.engine == _MLX)
    return 2 if is_small else 4


def _layers(
    shape: ModelShape,
    plan: TrainPlan,
    precision: Precision,
    device: DeviceAbilities,
    residual: int,
) -> tuple[int, int, int]:
    """Return how many layers keep anything, what all of them do, and what each does."""
    wide, is_mlx = 4 if precision == "fp32" else 2, device.engine == _MLX
    if plan.options.adapter is not None:
        found = adapted_layers(shape, plan.options.adapter, Widths(residual, wide, is_mlx))
        return found.layers, found.total, found.each
    each = layer_bytes(shape, residual, wide, fuses_norms=device.kind == _CUDA, keeps_scores=is_mlx)
    return shape.layers, shape.layers * each, each
