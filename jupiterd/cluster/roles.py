"""What each node is best at: generating, training, both, or nothing yet.

Owns the rule by which the leader hands out roles. Doesn't know the owner's local policy (which has
the last word), or what anybody is doing just now.

Speed is estimated before anything was measured, in "CPU cores": one for each core, and for each GiB
of an accelerator's memory CUDA_CORES_PER_GIB or METAL_CORES_PER_GIB, where an engine that can use
it is installed. It ranks machines; it promises no throughput.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jupiterd.cluster.hardware import Gpu, Hardware
from jupiterd.ids import NodeId

GIB = 1 << 30
CUDA_CORES_PER_GIB = 16.0
METAL_CORES_PER_GIB = 4.0
"""Less than CUDA's: the memory is shared with the CPU, so there is much of it for its speed."""

MIN_TRAINING_SHARE = 0.25
"""Of the fastest one's speed: slower than that, a device costs a gang more than it brings."""

PINNED = "somebody wants it so: jupiterctl node role"

MISSING_ENGINE = "no engine is installed: pip install 'jupiterd[cpu]' (or [mac], [nvidia])"

_ENGINES_OF_GPU = {"cuda": ("torch",), "metal": ("mlx", "torch")}
_CORES_PER_GIB = {"cuda": CUDA_CORES_PER_GIB, "metal": METAL_CORES_PER_GIB}


class Role(StrEnum):
    """What the leader wants a node to do."""

    GENERATOR = "generator"
    TRAINER = "trainer"
    HYBRID = "hybrid"
    """Both."""
    IDLE = "idle"


@dataclass(frozen=True)
class Candidate:
    """A node that is alive."""

    node: NodeId
    hardware: Hardware


def estimated_speed(hardware: Hardware) -> float:
    """Return how fast a machine may be, in CPU cores."""
    return hardware.cores + sum(_gpu_speed(gpu, hardware.engines) for gpu in hardware.gpus)


def assign(
    candidates: Iterable[Candidate], pins: Mapping[NodeId, str] | None = None
) -> dict[NodeId, tuple[Role, str]]:
    """Return each node's role and the reason for it, the same for the same nodes in any order.

    `pins` are the roles that people want; the others share what is left.
    """
    pinned = {
        node: (Role(role), PINNED) for node, role in (pins or {}).items() if role in list(Role)
    }
    found = list(candidates)
    free = [candidate for candidate in found if candidate.node not in pinned]
    here = {candidate.node for candidate in found}
    return {node: role for node, role in pinned.items() if node in here} | _assign_freely(free)


def _assign_freely(candidates: Iterable[Candidate]) -> dict[NodeId, tuple[Role, str]]:
    everybody = sorted(candidates, key=lambda candidate: candidate.node)
    able = [candidate for candidate in everybody if candidate.hardware.engines]
    idle = {
        candidate.node: (Role.IDLE, MISSING_ENGINE)
        for candidate in everybody
        if not candidate.hardware.engines
    }
    return idle | (_share_out(able) if len(able) > 2 else _all_hybrid(able))


def _all_hybrid(able: Sequence[Candidate]) -> dict[NodeId, tuple[Role, str]]:
    reason = "the only node that can work" if len(able) == 1 else "two nodes share everything"
    return {candidate.node: (Role.HYBRID, reason) for candidate in able}


def _share_out(able: Sequence[Candidate]) -> dict[NodeId, tuple[Role, str]]:
    speeds = {candidate.node: estimated_speed(candidate.hardware) for candidate in able}
    fastest = max(speeds.values())
    roles = {node: _by_speed(speed, fastest) for node, speed in speeds.items()}
    if all(role is Role.TRAINER for role, _ in roles.values()):
        slowest = min(speeds.values())
        node = max(node for node, speed in speeds.items() if speed == slowest)
        roles[node] = (Role.GENERATOR, "somebody must generate, and it gives up the least training")
    return roles


def _by_speed(speed: float, fastest: float) -> tuple[Role, str]:
    share = f"estimated at {speed / fastest:.0%} of the fastest"
    if speed < MIN_TRAINING_SHARE * fastest:
        return Role.GENERATOR, f"{share}: too slow to train beside it"
    return Role.TRAINER, share


def _gpu_speed(gpu: Gpu, engines: Sequence[str]) -> float:
    if not set(_ENGINES_OF_GPU.get(gpu.kind, ())) & set(engines):
        return 0.0
    return _CORES_PER_GIB[gpu.kind] * gpu.memory_bytes / GIB
