"""What torch finds out about the device that a rank computes on.

Owns the asking. Doesn't know what is decided from the answers (`cycle/engine_options`).
"""

import shutil
from importlib.util import find_spec

import psutil
import torch

from jupiterd.cycle.engine_options import DeviceAbilities

AMPERE = (8, 0)
"""CUDA capability from which bf16 is computed by the hardware, and flash-attn runs."""


def abilities(device: str) -> DeviceAbilities:
    """Return what the device can do, and how large its memory is."""
    kind = torch.device(device).type
    if kind == "cuda":
        return _cuda(device)
    memory_bytes = psutil.virtual_memory().total
    has_compiler = kind == "cpu" and any(map(shutil.which, ("g++", "clang++")))
    # Apple's GPUs share the machine's memory. A CPU's bf16 is slower where it has no instructions
    # for it, and unlike CPUs of one gang should not differ more than they must.
    return DeviceAbilities("torch", kind, memory_bytes, can_compile=has_compiler)


def _cuda(device: str) -> DeviceAbilities:
    properties = torch.cuda.get_device_properties(device)
    is_new = (properties.major, properties.minor) >= AMPERE
    return DeviceAbilities(
        engine="torch",
        kind="cuda",
        memory_bytes=properties.total_memory,
        has_bf16=is_new,
        has_flash=is_new and find_spec("flash_attn") is not None,
        can_compile=find_spec("triton") is not None and properties.major >= 7,
    )
