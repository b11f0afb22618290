"""What a training plan needs: memory of a device by part, work per token, and a plan that fits.

Owns that arithmetic. Doesn't know devices or engines: their memory and speed are told.

Bytes of a parameter    weights in fp32              weights in bf16
    weight              4, and 2 for autocast's copy  2, and 2 of what rounding lost
    gradient            4                             2
    AdamW               8                             8
    Muon (matrices)     4                             4

Activations are what the layers of our own Qwen3 keep for the backward pass; other architectures are
counted as if they were that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jupiterd.cycle.architectures import matrix_parameters, parameter_count
from jupiterd.cycle.engine_options import (
    DeviceAbilities,
    EngineOptions,
    Precision,
    ResolvedOptions,
    resolve,
)
from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.cycle.rank_needs import RESERVED_SHARE, Need
from jupiterd.errors import TooLargeForDeviceError

LOGIT_CHUNK_TOKENS = 1024
"""Tokens whose logits exist at a time; all of a batch's would be the largest tensor of all."""

LOGIT_CHUNK_BYTES = 256 << 20
"""The most that they may take in fp32: large vocabularies have chunks of fewer tokens."""

_WHOLE_TOKENS = 64
"""Chunks are multiples of it, so that products of matrices stay quick."""

RECOMPUTE_COST = 4 / 3
"""Time of a step with gradient checkpointing: the forward pass is done twice."""

FEEDING_TOKENS = 1024
"""Tokens of a micro batch with which a device does half of what it can with large ones."""


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes on one device."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        """Return the sum of all parts."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits


@dataclass(frozen=True)
class Fit:
    """A plan that fits a device."""

    plan: TrainPlan
    gradient_checkpointing: bool
    need: MemoryNeed
    changes: tuple[str, ...]
    """What is done otherwise than asked, so that it fits."""


def memory_need(
    shape: ModelShape, plan: TrainPlan, precision: Precision, *, gradient_checkpointing: bool
) -> MemoryNeed:
    """Return what one rank needs on its device."""
    parameters, options = parameter_count(shape), plan.options
    in_bf16 = options.weights == "bf16"
    copies = 2 if in_bf16 or precision != "fp32" else 0
    tokens = plan.micro_batch_sequences * shape.seq_len
    return MemoryNeed(
        weights=parameters * ((2 if in_bf16 else 4) + copies),
        gradients=parameters * (2 if in_bf16 else 4),
        optimizer=_optimizer_bytes(shape, options),
        activations=tokens
        * _activation_bytes(shape, options, precision, checkpointing=gradient_checkpointing)
        + _mask_bytes(shape, plan, precision),
        logits=_logit_bytes(shape, tokens),
    )


def logit_chunk_tokens(vocab_size: int) -> int:
    """Return how many tokens' logits exist at a time, by what LOGIT_CHUNK_BYTES hold in fp32."""
    fitting = LOGIT_CHUNK_BYTES // (4 * vocab_size) // _WHOLE_TOKENS * _WHOLE_TOKENS
    return max(_WHOLE_TOKENS, min(LOGIT_CHUNK_TOKENS, fitting))


def flops_per_token(shape: ModelShape) -> int:
    """Return the floating point operations of training on one token.

    As PaLM counts them: 6 for each parameter of a matrix (the output layer is one), and attention
    over the whole sequence. What checkpointing does twice isn't counted: it isn't useful work.
    """
    output = shape.vocab_size * shape.hidden
    attention = 12 * shape.layers * shape.heads * shape.head_dim * shape.seq_len
    return 6 * (matrix_parameters(shape) + output) + attention


def plan_that_fits(
    shape: ModelShape,
    plan: TrainPlan,
    precision: Precision,
    memory_bytes: int,
    smaller: Sequence[ModelShape] = (),
) -> Fit:
    """Return the plan, changed as little as makes it fit a device with this much memory.

    First what changes nothing but the speed: the micro batch, checkpointing. Then Muon, which keeps
    half as much as AdamW; then weights in bf16. All ranks must have the same of these two, so the
    smallest device of a gang decides.

    Args:
        shape: the model.
        plan: what was asked for.
        precision: what the device multiplies in.
        memory_bytes: of the gang's smallest device.
        smaller: other sizes, to name the nearest one that fits.

    Raises:
        TooLargeForDeviceError: no such plan fits.
    """
    room = round(memory_bytes * (1 - RESERVED_SHARE))
    for options in _optimizers(plan.options):
        ways = _ways(shape, plan.model_copy(update={"options": options}), precision)
        if fitting := [way for way in ways if way.need.total <= room]:
            best = min(fitting, key=lambda way: _cost(shape, way))
            return replace(best, changes=_changes(plan, best))
    raise _too_large(shape, precision, memory_bytes, smaller)


def options_on(device: DeviceAbilities, shape: ModelShape, plan: TrainPlan) -> ResolvedOptions:
    """Return how a plan is computed on a device; what doesn't fit in its memory is done twice.

    Raises:
        UsageError: something was asked for that the device can't do.
    """
    wanted = resolve(plan.options, device, fits=True)
    need = memory_need(shape, plan, wanted.precision, gradient_checkpointing=False)
    room = device.memory_bytes * (1 - RESERVED_SHARE)
    return resolve(plan.options, device, fits=not device.memory_bytes or need.total <= room)


def needs_on(
    device: DeviceAbilities, shape: ModelShape, plan: TrainPlan, micro_batch: int
) -> list[Need]:
    """Return what a rank needs on a device, as it computes there, halving the micro batch.

    A rank decides about checkpointing by the plan's own micro batch, however small its own is.
    """
    options = options_on(device, shape, plan)
    needs: list[Need] = []
    while micro_batch:
        smaller = plan.model_copy(update={"micro_batch_sequences": micro_batch})
        checkpointing = options.gradient_checkpointing
        need = memory_need(shape, smaller, options.precision, gradient_checkpointing=checkpointing)
        needs.append((micro_batch, need.total))
        micro_batch //= 2
    return needs


def _optimizers(options: EngineOptions) -> list[EngineOptions]:
    """Return what may be kept beside each weight, the most first."""
    muon = options.model_copy(update={"optimizer": "muon"})
    small = muon.model_copy(update={"weights": "bf16", "precision": "bf16"})
    may_be_small = options.precision in ("auto", "bf16")
    ladder = [options, muon, *([small] if may_be_small else [])]
    return list(dict.fromkeys(ladder))


def _ways(shape: ModelShape, plan: TrainPlan, precision: Precision) -> list[Fit]:
    """Return the plan with each micro batch and checkpointing that may be chosen."""
    asked = plan.options.gradient_checkpointing
    switches = [False, True] if asked == "auto" else [asked == "on"]
    chosen: Precision = "bf16" if plan.options.weights == "bf16" else precision
    found: list[Fit] = []
    size = min(plan.micro_batch_sequences, plan.batch_sequences)
    while size:
        smaller = plan.model_copy(update={"micro_batch_sequences": size})
        for switch in switches:
            need = memory_need(shape, smaller, chosen, gradient_checkpointing=switch)
            found.append(Fit(smaller, switch, need, ()))
        size //= 2
    return found


def _cost(shape: ModelShape, way: Fit) -> float:
    """Return about how long a token takes, compared with the best that could be."""
    tokens = way.plan.micro_batch_sequences * shape.seq_len
    return (RECOMPUTE_COST if way.gradient_checkpointing else 1.0) * (1 + FEEDING_TOKENS / tokens)


def _changes(asked: TrainPlan, found: Fit) -> tuple[str, ...]:
    given = found.plan
    told: list[str] = []
    if given.micro_batch_sequences < min(asked.micro_batch_sequences, asked.batch_sequences):
        told.append(f"micro batches of {given.micro_batch_sequences}")
    if found.gradient_checkpointing and asked.options.gradient_checkpointing == "auto":
        told.append("gradient checkpointing")
    if given.options.optimizer != asked.options.optimizer:
        told.append("Muon")
    if given.options.weights != asked.options.weights:
        told.append("weights in bf16")
    return tuple(told)


def _too_large(
    shape: ModelShape, precision: Precision, memory_bytes: int, smaller: Sequence[ModelShape]
) -> TooLargeForDeviceError:
    room = memory_bytes * (1 - RESERVED_SHARE)
    fitting = [other for other in smaller if _least(other, precision) <= room]
    nearest = max(fitting, key=lambda s: (parameter_count(s), -len(s.size)), default=None)
    return TooLargeForDeviceError(
        f"{shape.size} needs {_least(shape, precision) / 1e9:.1f} GB of a device's memory at the "
        f"least, and the smallest device has {memory_bytes / 1e9:.1f} GB",
        "add memory" if nearest is None else f"the nearest size that fits is {nearest.size}",
    )


def _least(shape: ModelShape, precision: Precision) -> float:
    """Return what the smallest plan of a size needs: one sequence, everything saved on."""
    options = _optimizers(EngineOptions(precision="auto"))[-1]
    plan = TrainPlan.model_construct(micro_batch_sequences=1, options=options)
    return memory_need(shape, plan, precision, gradient_checkpointing=True).total


def _optimizer_bytes(shape: ModelShape, options: EngineOptions) -> int:
    adamw = 8 * parameter_count(shape)
    return adamw - 4 * matrix_parameters(shape) if options.optimizer == "muon" else adamw


def _activation_bytes(
    shape: ModelShape, options: EngineOptions, precision: Precision, *, checkpointing: bool
) -> int:
    """Return what is kept of one token in all layers until the backward pass."""
    residual = 2 if options.weights == "bf16" else 4
    layer = _layer_bytes(shape, residual, 4 if precision == "fp32" else 2)
    between = shape.layers * residual * shape.hidden
    # The hidden states at the end, and their gradient.
    last = 3 * residual * shape.hidden
    return last + (between + layer if checkpointing else shape.layers * layer)


def _mask_bytes(shape: ModelShape, plan: TrainPlan, precision: Precision) -> int:
    """Return what keeping documents apart needs: who sees whom, and the same as numbers to add."""
    if plan.options.document_masks == "off" or plan.options.attention == "flash":
        return 0
    number = 4 if precision == "fp32" else 2
    return plan.micro_batch_sequences * shape.seq_len**2 * (1 + number)


def _layer_bytes(shape: ModelShape, residual: int, wide: int) -> int:
    """Return what one layer keeps of one token: `residual` and `wide` are bytes of a number."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    norms = 2 * (residual + wide) * shape.hidden
    # Before their norm, before their rotation and after it; the values; and what attention gives.
    attention = wide * (4 * queries + 4 * keys) + 4 * shape.heads
    return norms + attention + 4 * wide * shape.ff


def _logit_bytes(shape: ModelShape, tokens: int) -> int:
    """Return what the output layer needs: the logits of a chunk twice, and its own gradient."""
    chunk = 2 * 4 * min(tokens, logit_chunk_tokens(shape.vocab_size)) * shape.vocab_size
    return chunk + 4 * shape.vocab_size * shape.hidden
