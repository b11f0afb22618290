"""How an engine computes: precision, optimizer, what is kept in memory, which kernels.

Owns the options, and what `auto` means on a device. Doesn't know engines: a device's abilities are
told. What each rank resolves by itself (precision, checkpointing, kernels) may differ between the
ranks of a gang; the optimizer and the form of the weights may not.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from jupiterd.cycle.base.plain_text import Plain
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.errors import UsageError

Precision = Literal["fp32", "bf16", "fp16"]
Switch = Literal["auto", "on", "off"]


class EngineOptions(Plain):
    """What people may choose; everything has a default that fits."""

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """What matrices are multiplied in; the loss and the optimizer compute in fp32 always."""
    weights: Literal["fp32", "bf16"] = "fp32"
    """What weights and gradients are kept in. bf16 keeps what rounding lost beside the weights, so
    that small steps aren't lost: 4 bytes a parameter with its gradient less than fp32."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """Of the matrices; embeddings, the output layer and norms are AdamW's always."""
    gradient_checkpointing: Switch = "auto"
    """Compute a layer's insides twice instead of keeping them; auto: where they don't fit."""
    attention: Literal["auto", "sdpa", "flash"] = "auto"
    """torch's own kernels, or the package flash-attn; auto: torch's, which have it built in."""
    compile: Switch = "auto"
    """Let torch.compile write kernels; auto: on CUDA. A CPU gains less than compiling costs."""
    document_masks: Literal["on", "off"] = "off"
    """Let no token see another document of its sequence; costs a mask in each layer."""
    micro_batch: Literal["auto", "fixed"] = "auto"
    """How many sequences a rank holds at a time: what fills its device, or what the plan says."""

    adapter: AdapterOptions | None = None
    """What is trained beside frozen weights that were given; None: all weights are trained."""

    @model_serializer(mode="wrap")
    def _told(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return it without a choice that nobody made: ranks of older builds refuse what is new."""
        told: dict[str, Any] = plain(self)
        if told.get("micro_batch") == "auto":
            del told["micro_batch"]
        if told.get("adapter") is None:
            told.pop("adapter", None)
        return told


@dataclass(frozen=True)
class DeviceAbilities:
    """What a worker finds out about the device it computes on."""

    engine: str
    """`torch` or `mlx`."""
    kind: str
    """`cpu`, `cuda`, or another of the engine's names."""
    memory_bytes: int
    """Of the device, all of it; 0 where nobody knows."""
    has_bf16: bool = False
    """Multiplies in bf16 faster than in fp32."""
    has_flash: bool = False
    """The package flash-attn is installed, and the device can run it."""
    can_compile: bool = False
    """torch.compile finds the compiler that it needs."""
    ram_bytes: int = 0
    """Of the machine, where a GPU's memory is a part of it; 0: it isn't."""

    @property
    def has_bf16_weights(self) -> bool:
        """Say whether weights can be kept in bf16 there; MLX keeps none."""
        return self.engine != "mlx"


@dataclass(frozen=True)
class ResolvedOptions:
    """The options with no `auto` left, and why."""

    precision: Precision
    weights: Literal["fp32", "bf16"]
    optimizer: Literal["adamw", "muon"]
    gradient_checkpointing: bool
    attention: Literal["sdpa", "flash"]
    compile: bool
    reasons: tuple[str, ...]
    documents_apart: bool = False
    """No token sees another document of its sequence."""

    @property
    def autocast(self) -> bool:
        """Say whether matrices are multiplied in less than fp32."""
        return self.precision != "fp32"

    @property
    def scaler(self) -> bool:
        """Say whether the loss is multiplied, so that fp16 doesn't lose small gradients."""
        return self.precision == "fp16"

    def line(self) -> str:
        """Return what a rank prints at its start."""
        switches = {False: "OFF", True: "ON"}
        return (
            f"Precision {self.precision} | Autocast={switches[self.autocast]} | "
            f"GradScaler={switches[self.scaler]}{' | Documents apart' * self.documents_apart}"
        )


def resolve(options: EngineOptions, device: DeviceAbilities, *, fits: bool) -> ResolvedOptions:
    """Return what is done on this device; `fits`: a layer's insides can be kept in memory.

    Raises:
        UsageError: something was asked for that the device can't do.
    """
    precision, why_precision = _precision(options, device)
    checkpointing, why_checkpointing = _checkpointing(options, fits=fits)
    attention, why_attention = _attention(options, device, precision)
    compiled, why_compiled = _compile(options, device)
    return ResolvedOptions(
        precision=precision,
        weights=options.weights,
        optimizer=options.optimizer,
        gradient_checkpointing=checkpointing,
        attention=attention,
        compile=compiled,
        reasons=(
            f"precision {precision}: {why_precision}",
            f"gradient checkpointing {_word(checkpointing)}: {why_checkpointing}",
            f"attention {attention}: {why_attention}",
            f"compile {_word(compiled)}: {why_compiled}",
        ),
        documents_apart=options.document_masks == "on",
    )


def _precision(options: EngineOptions, device: DeviceAbilities) -> tuple[Precision, str]:
    wanted = options.precision
    if device.engine == "mlx" and (wanted == "fp16" or options.weights == "bf16"):
        what = "in fp16" if wanted == "fp16" else "with weights in bf16"
        raise UsageError(f"on MLX nothing is trained {what}", "choose another, or --engine torch")
    if options.weights == "bf16" and wanted in ("fp16", "fp32"):
        raise UsageError(f"weights in bf16 can't be multiplied in {wanted}", "choose bf16 or auto")
    if wanted != "auto":
        return wanted, "as asked"
    if options.weights == "bf16":
        return "bf16", "the weights are bf16"
    if device.has_bf16:
        return "bf16", f"this {device.kind} has it"
    if device.kind == "cuda":
        return "fp16", "this cuda device has no bf16"
    return "fp32", f"this {device.kind} multiplies nothing smaller faster"


def _checkpointing(options: EngineOptions, *, fits: bool) -> tuple[bool, str]:
    if options.gradient_checkpointing != "auto":
        return options.gradient_checkpointing == "on", "as asked"
    return (False, "the activations fit") if fits else (True, "the activations don't fit")


def _attention(
    options: EngineOptions, device: DeviceAbilities, precision: Precision
) -> tuple[Literal["sdpa", "flash"], str]:
    if options.attention != "flash":
        return "sdpa", "as asked" if options.attention == "sdpa" else "torch's own kernels"
    if not device.has_flash:
        raise UsageError(
            f"this {device.kind} has no flash-attn", "pip install flash-attn, or attention: sdpa"
        )
    if precision == "fp32":
        raise UsageError("flash-attn computes no fp32", "choose precision bf16 or fp16")
    return "flash", "as asked"


def _compile(options: EngineOptions, device: DeviceAbilities) -> tuple[bool, str]:
    if options.compile == "on" and not device.can_compile:
        raise UsageError(
            f"torch.compile has no compiler for this {device.kind}",
            "install g++ (CPU) or triton (CUDA), or compile: off",
        )
    if options.compile != "auto":
        return options.compile == "on", "as asked"
    if device.kind == "cuda" and device.can_compile:
        return True, "kernels for this cuda device"
    return False, f"a {device.kind} gains less than compiling costs"


def _word(switch: bool) -> str:  # noqa: FBT001 - its only argument
    return "on" if switch else "off"
