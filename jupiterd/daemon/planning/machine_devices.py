"""What a machine's device can do, before any worker has looked at it.

Owns that answer, from names and memory. Doesn't know what is computed there.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jupiterd.cluster.planning.engines import MLX, EngineChoice
from jupiterd.cluster.training.memory_limits import MemoryLimits
from jupiterd.cluster.values.hardware import Hardware, lent_to_gpu_bytes
from jupiterd.daemon.leader.machines import Machines
from jupiterd.ids import NodeId

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.training.engine_options import DeviceAbilities

NO_LIMITS: Final[MemoryLimits] = {}

_BEFORE_AMPERE = re.compile(r"\b([TVPKM]\d+|GTX|TITAN|Quadro|RTX 20\d\d)\b")
"""NVIDIA's names of GPUs that compute no bf16."""


@dataclass(frozen=True)
class Seat:
    """Where a rank computes."""

    node: NodeId
    machine: Hardware
    device: "DeviceAbilities"
    """What it has of the machine."""


def smallest_device(machines: Machines, gangs: Sequence[EngineChoice]) -> "DeviceAbilities":
    """Return the device with the least memory for a rank; ranks on one machine share its memory."""
    return smallest_seat(seats_of(machines, gangs)).device


def smallest_seat(seats: Sequence[Seat]) -> Seat:
    """Return the rank that has the least memory; of devices whose memory nobody knows, any."""
    sized = [seat for seat in seats if seat.device.memory_bytes]
    return min(sized or seats, key=lambda seat: seat.device.memory_bytes)


def seats_of(
    machines: Machines, gangs: Sequence[EngineChoice], limits: MemoryLimits = NO_LIMITS
) -> list[Seat]:
    """Return where the ranks of gangs compute, in their order, without those that nobody knows.

    Ranks on one machine share its memory, and those of one member what it may use of that.
    """
    pairs = [(gang.engine, node) for gang in gangs for node in gang.gang]
    known = [(engine, n, machines.hardware_of(n)) for engine, n in pairs]
    there = [(engine, node, machine) for engine, node, machine in known if machine is not None]
    sharing = Counter(machine.host for _, _, machine in there if machine.host)
    ranks = Counter(node for _, node, _ in there)
    return [
        Seat(
            node,
            machine,
            limited(
                _share_of(device_of(engine, machine), sharing[machine.host]),
                limits.get(node, 0) // ranks[node],
            ),
        )
        for engine, node, machine in there
    ]


def limited(device: "DeviceAbilities", most_bytes: int) -> "DeviceAbilities":
    """Return what a rank has of a device if it may use so much memory; 0: there is no limit."""
    if not most_bytes:
        return device
    memory_bytes = min(device.memory_bytes or most_bytes, most_bytes)
    return replace(device, memory_bytes=memory_bytes, ram_bytes=min(device.ram_bytes, most_bytes))


def _share_of(device: "DeviceAbilities", ranks: int) -> "DeviceAbilities":
    """Return what one of so many ranks has of a machine's memory, where they share it."""
    if ranks < 2 or device.kind == "cuda":
        return device
    memory_bytes, ram_bytes = device.memory_bytes // ranks, device.ram_bytes // ranks
    return replace(device, memory_bytes=memory_bytes, ram_bytes=ram_bytes)


def device_of(engine: str, machine: Hardware) -> "DeviceAbilities":
    """Return what a machine's device can do, as far as its name and memory tell."""
    from jupiterd.cycle.training.engine_options import DeviceAbilities

    kind = "metal" if engine == MLX else "cuda"
    gpus = [gpu for gpu in machine.working_gpus if gpu.kind == kind]
    if not gpus:
        return DeviceAbilities(engine, "cpu", machine.ram_bytes, can_compile=True)
    smallest = min(gpus, key=lambda gpu: gpu.memory_bytes)
    if engine == MLX:
        # A member of an older version tells all of the machine's memory.
        is_all = smallest.memory_bytes >= machine.ram_bytes
        lent = lent_to_gpu_bytes(machine.ram_bytes) if is_all else smallest.memory_bytes
        return DeviceAbilities(engine, "gpu", lent, has_bf16=True, ram_bytes=machine.ram_bytes)
    is_new = _BEFORE_AMPERE.search(smallest.name) is None
    device = DeviceAbilities(engine, "cuda", smallest.memory_bytes, can_compile=True)
    return replace(device, has_bf16=is_new, has_flash=is_new)
