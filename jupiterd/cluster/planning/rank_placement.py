"""Where each rank of a gang runs: on which node, on which of its devices, beside which others.

Owns the numbering of nodes and of ranks within a node, and the devices that ranks compute on. Pure.
A gang names a node once for each rank that runs there.

    --devices   a rank runs on
    (default)   each CUDA device that torch can use; else one on the CPU (MLX: its own choice)
    0,2         these CUDA devices
    cpu,cpu     the CPU, two of them
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.values.hardware import Hardware
from jupiterd.ids import NodeId

CPU: Final = "cpu"
CUDA: Final = "cuda"
MAX_RANKS_OF_ONE: Final = 64
"""How many ranks of one gang a node may have."""


@dataclass(frozen=True)
class RankPosition:
    """One rank's place among the ranks of its node, and its node's among the nodes."""

    node_rank: int
    local_rank: int
    local_world_size: int


def place_of(gang: Sequence[NodeId], rank: int) -> RankPosition:
    """Return where a rank of a gang is; nodes are numbered in the order of their first ranks."""
    node = gang[rank]
    nodes = list(dict.fromkeys(gang))
    return RankPosition(nodes.index(node), gang[:rank].count(node), gang.count(node))


def device_of(hardware: Hardware | None, local_rank: int) -> str:
    """Return the device that a torch rank computes on."""
    devices = () if hardware is None else hardware.devices
    return devices[local_rank] if local_rank < len(devices) else CPU


def training_devices(wanted: Sequence[str], cuda_devices: int) -> tuple[str, ...]:
    """Return the devices of a node's ranks, as `--devices` says or by default.

    cuda_devices: how many of them torch can use

    Raises:
        ValueError: a device is wanted that isn't there, or twice; the message says which.
    """
    if not wanted:
        return tuple(f"{CUDA}:{number}" for number in range(cuda_devices)) or (CPU,)
    if len(wanted) > MAX_RANKS_OF_ONE:
        raise ValueError(f"a node has at most {MAX_RANKS_OF_ONE} ranks, not {len(wanted)}")
    return tuple(_device(name, count, cuda_devices) for name, count in _counted(wanted))


def _counted(wanted: Sequence[str]) -> list[tuple[str, int]]:
    counts = Counter(wanted)
    return [(name, counts[name]) for name in wanted]


def _device(name: str, count: int, cuda_devices: int) -> str:
    if name == CPU:
        return CPU
    if int(name) >= cuda_devices:
        raise ValueError(f"there is no CUDA device {name} that torch can use here")
    if count > 1:
        raise ValueError(f"CUDA device {name} is named {count} times, and carries one rank")
    return f"{CUDA}:{int(name)}"
