"""What the ranks of a torch gang talk over: NCCL where all of them can, else gloo.

Owns that choice and its reason. Pure. Doesn't know torch: whether a device can be used was found
out by its own machine.
"""

from collections.abc import Mapping
from typing import Final

from jupiterd.cluster.planning.rank_placement import CUDA
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.ids import NodeId

NCCL: Final = "nccl"
GLOO: Final = "gloo"

_LINUX = "Linux"


def choose_backend(machines: Mapping[NodeId, Hardware], nccl_failure: str) -> tuple[str, str]:
    """Return the backend for ranks on all devices of these machines, and why.

    nccl_failure: why NCCL can't be had in this run, where that has been tried
    """
    if nccl_failure:
        return GLOO, f"gloo, since {nccl_failure}"
    without = [machine for machine in machines.values() if not _has_cuda_alone(machine)]
    if len(without) == len(machines):
        return GLOO, "gloo, since nobody trains on a CUDA device"
    if without:
        return GLOO, f"gloo, since {len(without)} of {len(machines)} don't train on CUDA devices"
    return NCCL, "NCCL, since every rank has a CUDA device"


def _has_cuda_alone(machine: Hardware) -> bool:
    """Say whether all ranks of a machine are on CUDA devices; NCCL is for Linux alone."""
    are_cuda = [device.partition(":")[0] == CUDA for device in machine.devices]
    return machine.system == _LINUX and bool(are_cuda) and all(are_cuda)
