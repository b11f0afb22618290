"""Whether a model can write on a device, by its config.json alone: nothing of it need be here yet.

Pure. Owns the checks of what it is, and how much memory its weights take. Doesn't know machines:
devices come in. What it keeps of the text that it writes isn't counted: fewer are written at once
where memory is short.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

from jupiterd.cycle.architectures import check_architecture, parameter_count
from jupiterd.cycle.engine_options import DeviceAbilities
from jupiterd.cycle.memory import CPU, MLX, PROGRAM_BYTES
from jupiterd.cycle.plan import Recipe, shape_of_config
from jupiterd.cycle.rank_needs import RESERVED_SHARE
from jupiterd.errors import TooLargeForDeviceError, UsageError

HINT: Final = (
    "name a smaller model, or a server that holds it: --generator http://HOST:PORT/v1#MODEL"
)
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
        TooLargeForDeviceError: its weights fit none of them.
    """
    if any(config.get(key) for key in _QUANTIZED) or isinstance(config.get("text_config"), Mapping):
        return
    if not any(device.engine == MLX for device in devices):
        check_architecture(name, config)
    try:
        shape = shape_of_config("model", config, recipe)
    except (UsageError, ValidationError):
        return  # its sizes have other names
    needs = {device: weight_bytes(parameter_count(shape), device) for device in devices}
    if not needs or any(_fits(device, need) for device, need in needs.items()):
        return
    largest = max(needs, key=lambda device: device.memory_bytes)
    raise TooLargeForDeviceError(
        f"{name} needs {needs[largest] / 1e9:.1f} GB of memory to write, and the largest device "
        f"has {largest.memory_bytes / 1e9:.1f} GB, of which "
        f"{RESERVED_SHARE * largest.memory_bytes / 1e9:.1f} GB are kept in reserve",
        HINT,
    )


def weight_bytes(parameters: int, device: DeviceAbilities) -> int:
    """Return what a device holds of a model that writes: in fp32 on a CPU, else in 16 bits."""
    if device.kind == CPU and device.engine != MLX:
        return 4 * parameters + PROGRAM_BYTES[device.engine]
    return 2 * parameters


def _fits(device: DeviceAbilities, need: int) -> bool:
    return not device.memory_bytes or need <= (1 - RESERVED_SHARE) * device.memory_bytes
