"""Whether a model can write on a device, by its config.json alone: nothing of it need be here yet.

Pure. Owns the checks of what it is, and how much memory it takes with the texts that it writes.
Doesn't know machines: devices come in. A model passes that has room for one text at a time: fewer
are written at once where memory is short.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

from jupiterd.cycle.training.architectures import check_architecture, parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import CPU, CUDA, HEAP_HOLES, MLX, PROGRAM_BYTES, MemoryNeed
from jupiterd.cycle.training.plan import ModelShape, Recipe, shape_of_config
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE
from jupiterd.errors import TooLargeForDeviceError, UsageError

HINT: Final = (
    "name a smaller model, or a server that holds it: --generator http://HOST:PORT/v1#MODEL"
)
PROMPT_TOKENS, NEW_TOKENS = 2_000, 768
"""Of the longest usual text: a passage of 6,000 characters, and what the longest template asks for.
"""

_USUAL_POSITIONS: Final = 2_048
"""Of a model whose configuration says none."""
_HIDDEN_AT_ONCE, _FF_AT_ONCE = 8, 4
"""Numbers of a prompt's token that are there at once, in widths of the model and of its
feed-forward part, while one layer reads it. Measured with SmolLM2 on a CPU: with 1 to 16 texts of
300 to 2,000 tokens the whole process took 0.91 to 1.08 times what is reckoned."""
_LOGITS_AT_ONCE: Final = 3
"""As the model says them, as chances, and in their order; in fp32."""
_QUANTIZED: Final = ("quantization_config", "quantization")


def check_writer(
    name: str, config: Mapping[str, Any], recipe: Recipe, devices: Collection[DeviceAbilities]
) -> None:
    """Refuse a model that no device could write with.

    Quantized ones pass, and those with a part for text: their own library says what it can't load,
    and so do models that mlx-lm alone may know, where a device has it.

    Args:
        name: as people call it.
        config: what its config.json says.
        recipe: of any size; a shape has one.
        devices: those that would write, an entry for each engine.

    Raises:
        UsageError: it can't write.
        TooLargeForDeviceError: it fits none of them, with one text that it writes.
    """
    if any(config.get(key) for key in _QUANTIZED) or isinstance(config.get("text_config"), Mapping):
        return
    if not any(device.engine == MLX for device in devices):
        check_architecture(name, config)
    try:
        shape = shape_of_config("model", config, recipe)
    except (UsageError, ValidationError):
        return  # its sizes have other names
    needs = {device: writer_need(shape, device) for device in devices}
    if not needs or any(need.fits(device) for device, need in needs.items()):
        return
    largest = max(needs, key=lambda device: device.memory_bytes)
    raise TooLargeForDeviceError(
        f"{name} needs {needs[largest].total / 1e9:.1f} GB of memory to write, and the largest "
        f"device has {largest.memory_bytes / 1e9:.1f} GB, of which "
        f"{RESERVED_SHARE * largest.memory_bytes / 1e9:.1f} GB are kept in reserve",
        HINT,
    )


def writer_need(
    shape: ModelShape,
    device: DeviceAbilities,
    texts: int = 1,
    prompt_tokens: int = PROMPT_TOKENS,
    new_tokens: int = NEW_TOKENS,
) -> MemoryNeed:
    """Return what a device holds of a model that writes: in fp32 on a CPU, else in 16 bits.

    Weights, keys and values of all tokens, and what a layer has of the prompts while it reads them.

    Args:
        shape: the model, with its configuration.
        device: what it writes on.
        texts: written at once.
        prompt_tokens: of each text, at the most.
        new_tokens: likewise, of what is written; the model's positions bound both together.
    """
    is_torch_on_cpu = device.kind == CPU and device.engine != MLX
    width = 4 if is_torch_on_cpu else 2
    limit = shape.config.get("max_position_embeddings")
    most = limit if isinstance(limit, int) and limit > 0 else _USUAL_POSITIONS
    held = min(most, prompt_tokens + new_tokens)
    keys_and_values = 2 * shape.layers * shape.kv_heads * shape.head_dim * width
    read = _HIDDEN_AT_ONCE * shape.hidden + _FF_AT_ONCE * shape.ff
    reading = texts * min(most, prompt_tokens) * read * width
    holes = round(HEAP_HOLES * reading) if is_torch_on_cpu else 0
    return MemoryNeed(
        weights=parameter_count(shape) * width,
        gradients=0,
        optimizer=0,
        activations=texts * held * keys_and_values + reading,
        logits=_LOGITS_AT_ONCE * 4 * texts * shape.vocab_size,
        program=0 if device.kind == CUDA else PROGRAM_BYTES[device.engine] + holes,
    )
