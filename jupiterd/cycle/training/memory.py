"""What a training plan needs: memory of a device by part, work per token, and a plan that fits.

Owns that arithmetic. Doesn't know devices or engines: their memory and speed are told.

Bytes of a parameter    weights in fp32              weights in bf16
    weight              4, and 2 for autocast's copy  2, and 2 of what rounding lost
    gradient            4                             2
    AdamW               8                             8
    Muon (matrices)     4                             4
    a checkpoint's copy weight and optimizer again, in fp32, in the machine's memory
    snapshots           twice the same, of a rank that trains alone, where there is room

What layers keep stands in `activations.kept_activations`. `make bench-train ONLY=memory` measures
all of it in worker processes: the peak of the process on CPUs, of the allocator on CUDA.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jupiterd.cycle.base.snapshot_pace import COPIES
from jupiterd.cycle.training.activations.kept_activations import activations
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.adapters.adapter_size import (
    dequantized_bytes,
    frozen_bytes,
    trained_parameters,
)
from jupiterd.cycle.training.adapters.adapter_work import adapter_flops
from jupiterd.cycle.training.adapters.quantized_base import smaller_adapters
from jupiterd.cycle.training.architectures import matrix_parameters, parameter_count
from jupiterd.cycle.training.engine_options import (
    DeviceAbilities,
    EngineOptions,
    Precision,
    ResolvedOptions,
    resolve,
)
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE, Need
from jupiterd.cycle.training.size_refusal import RefusedSize, size_refusal

LOGIT_CHUNK_TOKENS = 1024
"""Tokens whose logits exist at a time; all of a batch's would be the largest tensor of all."""

LOGIT_CHUNK_BYTES = 256 << 20
"""The most that they may take in fp32: large vocabularies have chunks of fewer tokens."""

LARGE_LOGIT_CHUNKS = (16_384, 8_192, 4_096, 2_048)
"""Tokens of a chunk on a card with room for it: fewer and larger products are faster there. Round
ones, so that the compiler finds the graph of a like card or plan again."""

LOGIT_SHARE_OF_ROOM = 1 / 8
"""Of the memory that a plan leaves free, for a larger chunk: the allocator's holes take some, and
another rank may compute on the same card."""

_WHOLE_TOKENS = 64
"""Chunks are multiples of it, so that products of matrices stay quick."""

_LOGIT_COPIES = 2
"""Of a chunk's logits in fp32, where the error isn't made in their place."""

RECOMPUTE_COST = 4 / 3
"""Time of a step with gradient checkpointing: the forward pass is done twice."""

FEEDING_TOKENS = 1024
"""Tokens of a micro batch with which a device does half of what it can with large ones."""


CPU: Final = "cpu"
CUDA: Final = "cuda"
MLX: Final = "mlx"
MIN_SEQ_LEN: Final = 128
"""Nobody is told to train on shorter ones."""

GPU: Final = DeviceAbilities("torch", "cuda", 0, has_bf16=True, can_compile=True)
"""A device with a memory of its own, of any size."""

PROGRAM_BYTES: Final[Mapping[str, int]] = {"torch": 400 << 20, "mlx": 400 << 20}
"""What a worker takes before there is a model, by engine: Python, the libraries, the tokenizer."""

BITSANDBYTES_BYTES: Final = 120 << 20
"""What torch's process takes more where it quantizes: that package, and torch's compiler with it.
"""

HEAP_HOLES: Final = 0.5
"""Of the activations on a CPU: gradients of them on their way back, and what lies unused between
them. The C library keeps what is freed, in pieces. Measured with 25m at 1,152 and 2,048 tokens (0.4
to 0.7, 0.5), and with SmolLM2 at 512 (0.6)."""

HEAP_HOLES_BESIDE_ADAPTERS: Final = 0.85
"""The same where adapters are trained: no gradients of weights fill the holes. Measured with
SmolLM2's 135 million parameters at 256 to 1,536 tokens (0.79 to 0.91)."""


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes of one rank: on its device, and beside it where both have one memory."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    program: int = 0
    """The process itself, with the holes in its heap; 0 where the device has its own memory."""
    copies: int = 0
    """Of weights and moments while they are written to the disk; 0 as well there."""
    snapshots: int = 0
    """Of the same in shared memory, which a rank alone makes where they fit; 0 as well there."""
    outer: int = 0
    """What an island keeps of its outer steps, where that is counted; 0 as well there."""
    frozen: int = 0
    """Of the weights, the part that isn't trained."""

    @property
    def on_device(self) -> int:
        """Return what the engine's own arrays take."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits

    @property
    def total(self) -> int:
        """Return the sum of all parts."""
        return self.on_device + self.program + self.copies + self.snapshots + self.outer

    def fits(self, device: DeviceAbilities) -> bool:
        """Say whether a device has room for it beside its reserve; one of unknown size has."""
        shares = device.ram_bytes > 0
        own = self.on_device if shares else self.total
        is_room = own <= (1 - RESERVED_SHARE) * (device.memory_bytes or math.inf)
        return is_room and (not shares or self.total <= (1 - RESERVED_SHARE) * device.ram_bytes)


@dataclass(frozen=True)
class Fit:
    """A plan that fits a device."""

    plan: TrainPlan
    gradient_checkpointing: bool
    need: MemoryNeed
    changes: tuple[str, ...]
    """What is done otherwise than asked, so that it fits."""


def memory_need(
    shape: ModelShape,
    plan: TrainPlan,
    precision: Precision,
    *,
    gradient_checkpointing: bool,
    device: DeviceAbilities = GPU,
) -> MemoryNeed:
    """Return what one rank needs, on a device of this kind."""
    need = _least_need(
        shape, plan, precision, gradient_checkpointing=gradient_checkpointing, device=device
    )
    if device.kind != CUDA:
        return _with_process(need, shape, plan, device)
    tokens = plan.micro_batch_sequences * shape.seq_len
    chunk = _chunk_that_fits(need, shape, device)
    return replace(need, logits=_logit_bytes(shape, plan, precision, device, tokens, chunk))


def _least_need(
    shape: ModelShape,
    plan: TrainPlan,
    precision: Precision,
    *,
    gradient_checkpointing: bool,
    device: DeviceAbilities,
) -> MemoryNeed:
    """Return what the device's own arrays take with the smallest chunk of logits."""
    options, trained = plan.options, trained_parameters(shape, plan.options)
    in_bf16 = options.weights == "bf16"
    tokens = plan.micro_batch_sequences * shape.seq_len
    logits = _logit_bytes(
        shape, plan, precision, device, tokens, logit_chunk_tokens(shape.vocab_size)
    )
    layers = activations(shape, plan, precision, device, checkpointing=gradient_checkpointing)
    again = tokens * layers.again
    if options.adapter is not None:  # a layer is computed again where the logits were
        again = max(0, again - logits)
    return MemoryNeed(
        weights=_weight_bytes(shape, options, precision, device.engine),
        frozen=_frozen_bytes(shape, options, precision, device.engine),
        gradients=trained * (2 if in_bf16 else 4),
        optimizer=optimizer_bytes(shape, options),
        activations=tokens * layers.kept + again + _mask_bytes(shape, plan, precision),
        logits=logits,
    )


def _weight_bytes(
    shape: ModelShape, options: EngineOptions, precision: Precision, engine: str
) -> int:
    """Return what weights take, with the copies in which matrices are multiplied.

    Beside an adapter the model's own are kept in what they are multiplied in, where that is bf16.
    """
    parameters, in_bf16 = parameter_count(shape), options.weights == "bf16"
    copies = 2 if in_bf16 or precision != "fp32" else 0
    if options.adapter is None:
        return parameters * ((2 if in_bf16 else 4) + copies)
    frozen = _frozen_bytes(shape, options, precision, engine)
    frozen += dequantized_bytes(shape, options.adapter, 4 if precision == "fp32" else 2, engine)
    return frozen + trained_parameters(shape, options) * (4 + copies)


def _frozen_bytes(
    shape: ModelShape, options: EngineOptions, precision: Precision, engine: str
) -> int:
    """Return what the weights beside an adapter take; 0 without one."""
    if options.adapter is None:
        return 0
    each = 2 if precision == "bf16" else 4 + (2 if precision == "fp16" else 0)
    return frozen_bytes(shape, options.adapter, each, engine)


def _with_process(
    need: MemoryNeed, shape: ModelShape, plan: TrainPlan, device: DeviceAbilities
) -> MemoryNeed:
    """Add what the process takes beside what it trains.

    A checkpoint is copied, and written while training goes on. The last one is, too, but then what
    a step needs isn't there any more.
    """
    share = HEAP_HOLES if plan.options.adapter is None else HEAP_HOLES_BESIDE_ADAPTERS
    holes = round(share * need.activations) if device.engine != MLX else 0
    copies = checkpoint_bytes(shape, plan.options)
    if not plan.saves_during_training:
        copies = max(0, copies - need.gradients - need.activations - need.logits - holes)
    program = PROGRAM_BYTES[device.engine] + holes
    if plan.options.adapter is not None and plan.options.adapter.bits and device.engine != MLX:
        program += BITSANDBYTES_BYTES
    return replace(need, program=program, copies=copies)


def with_snapshots(
    need: MemoryNeed, shape: ModelShape, plan: TrainPlan, device: DeviceAbilities
) -> MemoryNeed:
    """Add the copies of the state that a rank alone has in shared memory, where they fit.

    Those of a GPU with a memory of its own lie in its machine's, of which nothing is known here.
    """
    if device.kind == CUDA:
        return need
    more = replace(need, snapshots=COPIES * checkpoint_bytes(shape, plan.options))
    return more if more.fits(device) else need


def logit_chunk_tokens(vocab_size: int) -> int:
    """Return how many tokens' logits exist at a time, by what LOGIT_CHUNK_BYTES hold in fp32."""
    fitting = LOGIT_CHUNK_BYTES // (4 * vocab_size) // _WHOLE_TOKENS * _WHOLE_TOKENS
    return max(_WHOLE_TOKENS, min(LOGIT_CHUNK_TOKENS, fitting))


def logit_chunk_on(
    device: DeviceAbilities, shape: ModelShape, plan: TrainPlan, options: ResolvedOptions
) -> int:
    """Return how many tokens' logits exist at a time on this device: as many as it has room for.

    What else the plan needs comes first. It depends on nothing but the plan and the device, so a
    run that goes on elsewhere of the same kind computes the same.
    """
    need = _least_need(
        shape,
        plan,
        options.precision,
        gradient_checkpointing=options.gradient_checkpointing,
        device=device,
    )
    return _chunk_that_fits(need, shape, device)


def _chunk_that_fits(least: MemoryNeed, shape: ModelShape, device: DeviceAbilities) -> int:
    """Return the largest chunk that a share of the free memory holds beside the smallest one."""
    smallest = logit_chunk_tokens(shape.vocab_size)
    if device.kind != CUDA or not device.memory_bytes:
        return smallest
    room = (1 - RESERVED_SHARE) * device.memory_bytes - least.on_device
    a_token = _LOGIT_COPIES * 4 * shape.vocab_size
    fitting = smallest + LOGIT_SHARE_OF_ROOM * room / a_token
    larger = (tokens for tokens in LARGE_LOGIT_CHUNKS if smallest < tokens <= fitting)
    return next(larger, smallest)


def flops_per_token(shape: ModelShape, adapter: AdapterOptions | None = None) -> int:
    """Return the floating point operations of training on one token.

    As PaLM counts them: 6 for each parameter of a matrix (the output layer is one), and attention
    over the whole sequence. What checkpointing does twice isn't counted: it isn't useful work.
    adapter: what is trained, if not all weights
    """
    if adapter is not None:
        return adapter_flops(shape, adapter)
    output = shape.vocab_size * shape.hidden
    attention = 12 * shape.layers * shape.heads * shape.head_dim * shape.seq_len
    return 6 * (matrix_parameters(shape) + output) + attention


def plan_that_fits(
    shape: ModelShape,
    plan: TrainPlan,
    device: DeviceAbilities,
    smaller: Sequence[ModelShape] = (),
) -> Fit:
    """Return the plan, changed as little as makes it fit a device like this.

    First what changes nothing but the speed: the micro batch, checkpointing. Then Muon, which keeps
    half as much as AdamW; then weights in bf16, where the engine has them. All ranks must have the
    same of these two, so the smallest device of a gang decides.

    Args:
        shape: the model.
        plan: what was asked for.
        device: the gang's smallest.
        smaller: other sizes, to name the nearest one that fits.

    Raises:
        TooLargeForDeviceError: no such plan fits.
        UsageError: something was asked for that the device can't do.
    """
    for options in _optimizers(plan.options, device):
        candidates = candidate_fits(shape, plan.model_copy(update={"options": options}), device)
        if fitting := [fit for fit in candidates if fit.need.fits(device)]:
            best = min(fitting, key=lambda fit: cost_of(shape, fit))
            return replace(best, changes=changes_of(plan, best))
    raise size_refusal(_refused(shape, plan, device, smaller), device)


def options_on(device: DeviceAbilities, shape: ModelShape, plan: TrainPlan) -> ResolvedOptions:
    """Return how a plan is computed on a device; what doesn't fit in its memory is done twice.

    Raises:
        UsageError: something was asked for that the device can't do.
    """
    wanted = resolve(plan.options, device, fits=True)
    need = memory_need(shape, plan, wanted.precision, gradient_checkpointing=False, device=device)
    return resolve(plan.options, device, fits=need.fits(device))


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
        need = memory_need(
            shape,
            smaller,
            options.precision,
            gradient_checkpointing=options.gradient_checkpointing,
            device=device,
        )
        needs.append((micro_batch, need.total))
        micro_batch //= 2
    return needs


def _optimizers(options: EngineOptions, device: DeviceAbilities) -> list[EngineOptions]:
    """Return what may be kept beside each weight, the most first, of what the engine has."""
    if options.adapter is not None:  # there is little to be saved on
        return [options]
    muon = options.model_copy(update={"optimizer": "muon"})
    small = muon.model_copy(update={"weights": "bf16", "precision": "bf16"})
    may_be_small = options.precision in ("auto", "bf16") and device.has_bf16_weights
    ladder = [options, muon, *([small] if may_be_small else [])]
    return list(dict.fromkeys(ladder))


def candidate_fits(shape: ModelShape, plan: TrainPlan, device: DeviceAbilities) -> list[Fit]:
    """Return the plan with each micro batch and checkpointing that may be chosen."""
    wanted = plan.options.gradient_checkpointing
    switches = [False, True] if wanted == "auto" else [wanted == "on"]
    precision = resolve(plan.options, device, fits=True).precision
    found: list[Fit] = []
    size = min(plan.micro_batch_sequences, plan.batch_sequences)
    while size:
        smaller = plan.model_copy(update={"micro_batch_sequences": size})
        for switch in switches:
            need = memory_need(
                shape, smaller, precision, gradient_checkpointing=switch, device=device
            )
            found.append(Fit(smaller, switch, need, ()))
        size //= 2
    return found


def cost_of(shape: ModelShape, fit: Fit) -> float:
    """Return about how long a token takes, compared with the best that could be."""
    tokens = fit.plan.micro_batch_sequences * shape.seq_len
    return (RECOMPUTE_COST if fit.gradient_checkpointing else 1.0) * (1 + FEEDING_TOKENS / tokens)


def changes_of(plan: TrainPlan, found: Fit) -> tuple[str, ...]:
    """Return what is done otherwise than a plan asks for, in words."""
    given = found.plan
    changes: list[str] = []
    if given.micro_batch_sequences < min(plan.micro_batch_sequences, plan.batch_sequences):
        changes.append(f"micro batches of {given.micro_batch_sequences}")
    if found.gradient_checkpointing and plan.options.gradient_checkpointing == "auto":
        changes.append("gradient checkpointing")
    if given.options.optimizer != plan.options.optimizer:
        changes.append("Muon")
    if given.options.weights != plan.options.weights:
        changes.append("weights in bf16")
    return tuple(changes)


def _refused(
    shape: ModelShape, plan: TrainPlan, device: DeviceAbilities, smaller: Sequence[ModelShape]
) -> RefusedSize:
    """Return what is to be said of a model that doesn't fit, and what would."""
    free = plan.model_copy(update={"options": _without_wishes(plan.options)})
    short = shape.model_copy(update={"seq_len": max(MIN_SEQ_LEN, shape.seq_len // 4)})
    fitting = [other for other in smaller if _least(other, free, device).fits(device)]
    nearest = max(fitting, key=lambda s: (parameter_count(s), -len(s.size)), default=None)
    return RefusedSize(
        name=shape.size,
        need=_least(shape, plan, device),
        nearest="" if nearest is None else nearest.size,
        seq_len=short.seq_len if _least(short, plan, device).fits(device) else 0,
        without_wishes=_least(shape, free, device).fits(device),
        smaller_adapter=_smaller_adapter(shape, plan, device),
        is_whole=plan.options.adapter is not None,
    )


def _smaller_adapter(shape: ModelShape, plan: TrainPlan, device: DeviceAbilities) -> str:
    """Return what an adapter that would fit does otherwise, as an option; empty: none fits."""
    for said, adapter in smaller_adapters(plan.options.adapter, shape.layers):
        options = plan.options.model_copy(update={"adapter": adapter})
        if _least(shape, plan.model_copy(update={"options": options}), device).fits(device):
            return said
    return ""


def _without_wishes(options: EngineOptions) -> EngineOptions:
    """Return the options with everything open that decides how much memory is taken."""
    return options.model_copy(update={"precision": "auto", "gradient_checkpointing": "auto"})


def _least(shape: ModelShape, plan: TrainPlan, device: DeviceAbilities) -> MemoryNeed:
    """Return what the smallest plan needs: one sequence at a time, everything saved on."""
    options = _optimizers(plan.options, device)[-1]
    one = plan.model_copy(update={"micro_batch_sequences": 1, "options": options})
    return min(
        (fit.need for fit in candidate_fits(shape, one, device)), key=lambda need: need.total
    )


def checkpoint_bytes(shape: ModelShape, options: EngineOptions) -> int:
    """Return what a checkpoint takes on the disk: weights in fp32, and the optimizer's moments."""
    return 4 * trained_parameters(shape, options) + optimizer_bytes(shape, options)


def optimizer_bytes(shape: ModelShape, options: EngineOptions) -> int:
    """Return what the optimizer keeps beside the weights."""
    adamw = 8 * trained_parameters(shape, options)
    return adamw - 4 * matrix_parameters(shape) if options.optimizer == "muon" else adamw


def _mask_bytes(shape: ModelShape, plan: TrainPlan, precision: Precision) -> int:
    """Return what keeping documents apart needs: who sees whom, and the same as numbers to add."""
    if plan.options.document_masks == "off" or plan.options.attention == "flash":
        return 0
    number = 4 if precision == "fp32" else 2
    return plan.micro_batch_sequences * shape.seq_len**2 * (1 + number)


def _logit_bytes(
    shape: ModelShape,
    plan: TrainPlan,
    precision: Precision,
    device: DeviceAbilities,
    tokens: int,
    at_a_time: int,
) -> int:
    """Return what the output layer needs: a chunk's logits, and its own gradient.

    Of fp32 logits torch makes the error in their place on a CPU; elsewhere there are copies of
    another precision, or of the compiler's. MLX has the error beside the logits, the next chunk's
    before it lets go of them, and products beside the gradient that they are added to.
    """
    is_mlx = device.engine == MLX
    chunk = 4 * min(tokens, at_a_time) * shape.vocab_size
    in_place = device.kind == CPU and precision == "fp32" and not is_mlx
    is_frozen = plan.options.adapter is not None
    own = 0 if is_frozen else 4 * shape.vocab_size * shape.hidden
    if is_mlx:
        return (3 if tokens > at_a_time else 2) * chunk + 2 * own
    return (1 if in_place else _LOGIT_COPIES) * chunk + own
