"""What each node is best at: generating, training, both, or nothing yet.

Owns the rule by which the leader hands out roles. Doesn't know the owner's local policy (which has
the last word), or what anybody is doing just now.

Speed is estimated before anything was measured, in "CPU cores": one for each core, and for each GiB
of an accelerator's memory CUDA_CORES_PER_GIB or METAL_CORES_PER_GIB, where an engine that can use
it is installed. It ranks machines; it promises no throughput.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.cluster.values.version_groups import why_idle
from jupiterd.errors import MissingExtraError
from jupiterd.ids import NodeId
from jupiterd.versions import Kinship, kinship

GIB = 1 << 30
CUDA_CORES_PER_GIB = 16.0
METAL_CORES_PER_GIB = 4.0
"""Less than CUDA's: the memory is shared with the CPU, so there is much of it for its speed."""

MIN_TRAINING_SHARE = 0.25
"""Of the fastest one's speed: slower than that, a device costs a gang more than it brings."""

PINNED = "somebody chose it; to leave it to the leader: jupiterctl node role NODE auto"

WRITTEN = (
    "the cluster file of the leader says so; a command counts more: jupiterctl node role NODE ROLE"
)

MISSING_ENGINE = f"no engine is installed: {MissingExtraError.default_hint}"

_ENGINES_OF_GPU = {"cuda": ("torch",), "metal": ("mlx", "torch")}
_CORES_PER_GIB = {"cuda": CUDA_CORES_PER_GIB, "metal": METAL_CORES_PER_GIB}


class Role(StrEnum):
    """What the leader wants a node to do."""

    GENERATOR = "generator"
    TRAINER = "trainer"
    HYBRID = "hybrid"
    """Both."""
    IDLE = "idle"


ALONE = (Role.HYBRID, "the only node that can work just now")

ALONGSIDE_PIN = {
    Role.HYBRID: (Role.HYBRID, "two nodes share everything"),
    Role.GENERATOR: (Role.TRAINER, "the other node generates, so this one trains"),
    Role.TRAINER: (Role.HYBRID, "it generates beside a pinned trainer, and trains with it"),
}
"""What one of two does beside the other, by what that one does."""


@dataclass(frozen=True)
class Candidate:
    """A node that is alive."""

    node: NodeId
    hardware: Hardware


def estimated_speed(hardware: Hardware) -> float:
    """Return how fast a machine may be, in CPU cores."""
    return hardware.cores + sum(_gpu_speed(gpu, hardware.engines) for gpu in hardware.working_gpus)


def assign(
    candidates: Collection[Candidate],
    pins: Mapping[NodeId, str] | None = None,
    written: Mapping[NodeId, str] | None = None,
    program: str = "",
    let_go: Mapping[NodeId, str] | None = None,
) -> dict[NodeId, tuple[Role, str]]:
    """Return each node's role and the reason for it, the same for the same nodes in any order.

    `pins` are the roles that people want, empty where they left one to the leader by command;
    `written` those in a file, for nodes about which nobody gave a command. The others take on what
    those leave undone. `program` is the leader's version: whoever isn't alike has no role.
    `let_go` are those that a gang trains faster without, and why: these generate, where others can
    train.
    """
    commanded = pins or {}
    apart = {
        c.node: (Role.IDLE, why_idle(c.hardware.program, program))
        for c in candidates
        if kinship(c.hardware.program, program) is not Kinship.ALIKE
    }
    alike = (candidate for candidate in candidates if candidate.node not in apart)
    found = sorted(alike, key=lambda candidate: candidate.node)
    here = {candidate.node for candidate in found}
    wanted = {
        node: Role(role)
        for node, role in {**(written or {}), **commanded}.items()
        if node in here and role in list(Role)
    }
    assigned = {
        node: (role, PINNED if node in commanded else WRITTEN) for node, role in wanted.items()
    }
    free = [candidate for candidate in found if candidate.node not in wanted]
    idle = {c.node: (Role.IDLE, MISSING_ENGINE) for c in free if not c.hardware.engines}
    able = [candidate for candidate in found if candidate.hardware.engines]
    slow = _slow(able, wanted, let_go or {})
    roles = _assign_freely(able, wanted | dict.fromkeys(slow, Role.GENERATOR))
    return apart | assigned | idle | roles | slow


def drained(pins: Mapping[NodeId, str], written: Mapping[NodeId, str]) -> frozenset[NodeId]:
    """Return who is to do nothing because people said so; `assign` says what the two are.

    Not who is idle because nothing is installed there: such a node may still fetch and filter text.
    """
    wanted = {**written, **pins}
    return frozenset(node for node, role in wanted.items() if role == Role.IDLE)


def pinned_trainers(pins: Mapping[NodeId, str], written: Mapping[NodeId, str]) -> frozenset[NodeId]:
    """Return who is to train because people said so, however slow it is."""
    wanted = {**written, **pins}
    return frozenset(node for node, role in wanted.items() if role in (Role.TRAINER, Role.HYBRID))


def _slow(
    able: Sequence[Candidate], wanted: Mapping[NodeId, Role], let_go: Mapping[NodeId, str]
) -> dict[NodeId, tuple[Role, str]]:
    """Return who generates because a gang goes on without it; nobody where no other can train."""
    free = [c.node for c in able if c.node not in wanted]
    slow = {node: (Role.GENERATOR, let_go[node]) for node in free if node in let_go}
    return slow if len(slow) < len(able) else {}


def _assign_freely(
    able: Sequence[Candidate], pins: Mapping[NodeId, Role]
) -> dict[NodeId, tuple[Role, str]]:
    """Return the roles of those that nobody has pinned; who is pinned to work counts beside them.

    `able` are all nodes with an engine, the pinned ones among them.
    """
    free = [candidate for candidate in able if candidate.node not in pins]
    working = [c for c in able if pins.get(c.node) is not Role.IDLE]
    pinned = {c.node: pins[c.node] for c in working if c.node in pins}
    if len(working) > 2 and free:
        return _share_out(free, working, pinned)
    beside = next(iter(pinned.values()), Role.HYBRID)
    return {c.node: ALONE if len(working) == 1 else ALONGSIDE_PIN[beside] for c in free}


def _share_out(
    free: Sequence[Candidate], working: Sequence[Candidate], pinned: Mapping[NodeId, Role]
) -> dict[NodeId, tuple[Role, str]]:
    speeds = {candidate.node: estimated_speed(candidate.hardware) for candidate in working}
    fastest = max(v for node, v in speeds.items() if pinned.get(node) is not Role.GENERATOR)
    compared = "the fastest that may train" if pinned else "the fastest"
    roles = {c.node: _by_speed(speeds[c.node] / fastest, compared) for c in free}
    everybody = [*pinned.values(), *(role for role, _ in roles.values())]
    if all(role is Role.TRAINER for role in everybody):
        slowest = min(speeds[node] for node in roles)
        node = max(node for node in roles if speeds[node] == slowest)
        whose = " of those that aren't pinned" if pinned else ""
        reason = f"somebody must generate, and{whose} it gives up the least training"
        roles[node] = (Role.GENERATOR, reason)
    return roles


def _by_speed(share: float, compared: str) -> tuple[Role, str]:
    reason = f"estimated at {share:.0%} of {compared}"
    if share < MIN_TRAINING_SHARE:
        return Role.GENERATOR, f"{reason}: too slow to train beside it"
    return Role.TRAINER, reason


def _gpu_speed(gpu: Gpu, engines: Sequence[str]) -> float:
    if not set(_ENGINES_OF_GPU.get(gpu.kind, ())) & set(engines):
        return 0.0
    return _CORES_PER_GIB[gpu.kind] * gpu.memory_bytes / GIB
