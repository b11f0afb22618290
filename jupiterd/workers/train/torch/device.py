"""What torch finds out about the device that a rank computes on.

Owns the asking. Doesn't know what is decided from the answers (`cycle/engine_options`).
"""

import platform
import shutil
from collections.abc import Sequence
from importlib.util import find_spec

import torch

from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.peak_flops import peak_flops_per_s
from jupiterd.memory_limits import memory_bytes

AMPERE = (8, 0)
"""CUDA capability from which bf16 is computed by the hardware, and flash-attn runs."""


def abilities(device: str) -> DeviceAbilities:
    """Return what the device can do, and how large its memory is."""
    kind = torch.device(device).type
    if kind == "cuda":
        return _cuda(device)
    has_compiler = kind == "cpu" and any(map(shutil.which, ("g++", "clang++")))
    # Apple's GPUs share the machine's memory. A CPU's bf16 is slower where it has no instructions
    # for it, and unlike CPUs of one gang should not differ more than they must.
    return DeviceAbilities("torch", kind, memory_bytes(), can_compile=has_compiler)


def gpus_of(device: str) -> tuple[str, ...]:
    """Return the name of the GPU, if it is one."""
    return (torch.cuda.get_device_name(device),) if torch.device(device).type == "cuda" else ()


def peak_of(gpus: Sequence[str]) -> float:
    """Return the floating point operations per second of a GPU at best; 0 where nobody knows."""
    return next(filter(None, map(peak_flops_per_s, gpus)), 0.0)


def platform_of(device: str) -> str:
    """Return what decides how numbers are rounded there: equal ones compute alike, to the bit."""
    if torch.device(device).type == "cuda":
        where = torch.cuda.get_device_name(device)
    else:
        where = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()} {device}"
    return f"torch {torch.__version__} {where}"


def use_device(device: str) -> None:
    """Let what asks for no device in particular, such as NCCL, mean this one."""
    if torch.device(device).type == "cuda":
        torch.cuda.set_device(torch.device(device))


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
