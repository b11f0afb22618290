"""The devices that a gang's ranks compute on here, and how much of their memory is free.

Owns the mapping from a rank's device to the GPU behind it. Doesn't know what ranks need.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jupiterd import memory_limits
from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.planning.rank_placement import CPU, CUDA, device_of
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.hardware import nvidia
from jupiterd.hardware.cuda import METAL, visible_gpus

FreeBytes = Callable[[str], int]
"""UUID -> free bytes; 0 where nobody knows."""


@dataclass(frozen=True)
class RankDevice:
    """Where one rank computes."""

    name: str
    """`cpu`, `gpu` or `cuda:0`."""
    uuid: str
    """Of the GPU, for as long as it exists and whoever counts; empty for the CPU."""
    memory_bytes: int
    """All of it; 0 where nobody knows."""


def rank_device(
    machine: Hardware,
    engine: str,
    local_rank: int,
    environment: Mapping[str, str] = os.environ,
) -> RankDevice:
    """Return where a rank computes on this machine."""
    if engine == MLX:
        metal = next((gpu for gpu in machine.gpus if gpu.kind == METAL), None)
        return _cpu(machine) if metal is None else _of(metal, "gpu")
    name = device_of(machine, local_rank)
    kind, _, number = name.partition(":")
    gpus = visible_gpus(machine.gpus, environment)
    if kind != CUDA or int(number) >= len(gpus):
        return _cpu(machine)
    return _of(gpus[int(number)], name)


def free_memory_bytes(device: RankDevice, of_gpu: FreeBytes = nvidia.free_bytes) -> int:
    """Return how much of a device's memory nobody uses; 0 where nobody knows."""
    if device.name.startswith(CUDA):
        return of_gpu(device.uuid)
    return memory_limits.free_memory_bytes()


def _cpu(machine: Hardware) -> RankDevice:
    return RankDevice(CPU, "", machine.ram_bytes)


def _of(gpu: Gpu, name: str) -> RankDevice:
    return RankDevice(name, gpu.uuid, gpu.memory_bytes)
