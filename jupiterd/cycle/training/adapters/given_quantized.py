"""Models that come quantized: beside which of them an adapter is trained, and what the rest are.

Owns reading that of a configuration, and the shapes that packed tensors stand for. Pure. mlx-lm
writes `quantization`, packs numbers into 32 bits as NAME.weight, and has NAME.scales and
NAME.biases beside them. Others say `quantization_config` with a method.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from jupiterd.errors import UsageError

WEIGHT, SCALES, BIASES = ".weight", ".scales", ".biases"

WHOLE: Final = (
    "give the model that it was made from, in bf16, fp16 or fp32; with --lora --quantize 4bit its "
    "matrices are kept in as few bits"
)
"""What helps who gives a model that is quantized already."""

_OF_MLX, _BY_METHOD = "quantization", "quantization_config"
_NAMES: Final = {
    "awq": "AWQ", "bitsandbytes": "bitsandbytes", "compressed-tensors": "compressed-tensors",
    "fp8": "FP8", "gptq": "GPTQ", "hqq": "HQQ", "mxfp4": "MXFP4", "torchao": "torchao",
}  # fmt: skip
"""Methods as people write them."""
_GROUPS: Final = frozenset({32, 64, 128})
_BITS: Final = frozenset({4, 8})
_AFFINE: Final = "affine"
_WORD_BITS: Final = 32
_SAID: Final = frozenset({"group_size", "bits", "mode"})

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class GivenBits:
    """How a folder of mlx-lm keeps its matrices."""

    bits: int
    group: int
    """Numbers of a row that share a scale and a bias."""

    def whole_shapes(self, found: Shapes) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the tensors that stand for others, by the names that those have."""
        packed = {name.removesuffix(SCALES) for name in found if name.endswith(SCALES)}
        beside = {f"{path}{part}" for path in packed for part in (SCALES, BIASES)}
        return {
            name: self._whole(shape) if name.removesuffix(WEIGHT) in packed else shape
            for name, shape in found.items()
            if name not in beside
        }

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] * _WORD_BITS // self.bits)


def given_bits(config: Mapping[str, Any]) -> GivenBits | None:
    """Return how a model's own files are quantized, if an adapter can be trained beside it."""
    said = config.get(_OF_MLX)
    if not isinstance(said, Mapping):
        return None
    fields = cast("Mapping[str, Any]", said)
    bits, group = fields.get("bits"), fields.get("group_size")
    is_plain = fields.keys() <= _SAID and fields.get("mode", _AFFINE) == _AFFINE
    if not is_plain or bits not in _BITS or group not in _GROUPS:
        return None
    return GivenBits(int(cast("int", bits)), int(cast("int", group)))


def check_given(name: str, config: Mapping[str, Any]) -> None:
    """Raise UsageError where a model is quantized in a way that nothing is trained beside."""
    if not (config.get(_OF_MLX) or config.get(_BY_METHOD)) or given_bits(config) is not None:
        return
    raise UsageError(
        f"the weights of {name} are quantized{_how(config)}, and such ones can't be trained", WHOLE
    )


def why_not_beside(config: Mapping[str, Any], engine: str) -> str:
    """Return why an engine can't train beside such weights; empty: it can, or they are whole."""
    if given_bits(config) is None or engine == "mlx":
        return ""
    return "its weights are quantized for MLX, and only MLX trains beside those"


def check_adapter_beside(
    name: str, config: Mapping[str, Any], *, is_adapter: bool, quantize: str
) -> None:
    """Raise UsageError where all weights of a quantized model are to be trained, or other bits."""
    found = given_bits(config)
    if found is None:
        return
    if not is_adapter:
        raise UsageError(
            f"the weights of {name} are quantized, so only an adapter can be trained beside them",
            f"--lora; or {WHOLE}",
        )
    if quantize != "none":
        raise UsageError(
            f"--quantize {quantize}: the weights of {name} have {found.bits} bits already",
            f"--quantize none; or {WHOLE}",
        )


def check_whole(name: str, config: Mapping[str, Any]) -> None:
    """Raise UsageError where a cycle would begin with quantized weights: torch judges, too."""
    if given_bits(config) is not None:
        raise UsageError(
            f"the weights of {name} are quantized for MLX, and a cycle's students are compared on "
            "either engine",
            WHOLE,
        )


def without_quantization(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as that of the whole model."""
    return {k: value for k, value in config.items() if k not in {_OF_MLX, _BY_METHOD}}


def _how(config: Mapping[str, Any]) -> str:
    said = config.get(_BY_METHOD)
    method = str(said.get("quant_method", "")) if isinstance(said, Mapping) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if config.get(_OF_MLX):
        return " for MLX in a form that isn't read (affine, 4 or 8 bits, groups of 32, 64 or 128)"
    return f" by {_NAMES.get(method, method)}" if method else ""
