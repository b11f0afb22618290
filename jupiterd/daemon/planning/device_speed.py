"""How fast a machine may train, before anybody has measured it.

Owns a guess from the class of its device. Doesn't know what was measured (`throughput_history`).
"""

from jupiterd.cluster.planning.rank_placement import CUDA
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.peak_flops import (
    APPLE_FLOPS_PER_S,
    CORE_FLOPS_PER_S,
    USED_OF_PEAK,
    peak_flops_per_s,
)
from jupiterd.daemon.planning.machine_devices import device_of


def guessed_flops_per_s(engine: str, machine: Hardware) -> float:
    """Return how many operations of a training a machine does in a second; 0: nobody knows.

    Operations are counted as `flops_per_token` does.
    """
    device = device_of(engine, machine)
    if device.kind == "cpu":
        return machine.cores * CORE_FLOPS_PER_S
    if device.kind != CUDA:
        return APPLE_FLOPS_PER_S
    gpus = [peak_flops_per_s(gpu.name) or 0.0 for gpu in machine.working_gpus if gpu.kind == CUDA]
    return USED_OF_PEAK * sum(gpus)
