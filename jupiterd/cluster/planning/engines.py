"""Which engine a gang trains on, and who can take part.

Owns that choice. Doesn't know what an engine does, or how a gang is launched.

    wanted   the trainers are                     engine   who takes part
    auto     Macs with MLX, all of them           mlx      all
    auto     anything else, one with torch        torch    those with torch
    auto     anything else, none with torch       mlx      those with MLX
    torch    -                                    torch    those with torch
    mlx      -                                    mlx      those with MLX; Macs alone, if any is one

On torch a machine has a rank for each of its devices, on MLX one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.planning.backends import GLOO, choose_backend
from jupiterd.cluster.planning.rank_placement import MAX_RANKS_OF_ONE
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.errors import MissingExtraError, UsageError
from jupiterd.ids import NodeId

TORCH: Final = "torch"
MLX: Final = "mlx"
AUTO: Final = "auto"
WANTED: Final = (AUTO, TORCH, MLX)

_MAC = "Darwin"
_LINKS = {TORCH: GLOO, MLX: "ring"}


@dataclass(frozen=True)
class EngineChoice:
    """An engine, the nodes that train on it, and why."""

    engine: str
    gang: tuple[NodeId, ...]
    """The node of each rank; one with two ranks stands twice."""
    reason: str
    backend: str = ""
    """What more than one rank talk over; empty: what the engine mostly has."""

    @property
    def label(self) -> str:
        """Return the engine and what its ranks talk over, such as mlx/ring; one rank needs none."""
        if len(self.gang) == 1:
            return self.engine
        return f"{self.engine}/{self.backend or _LINKS[self.engine]}"


def choose_engine(
    wanted: str,
    trainers: Mapping[NodeId, Hardware],
    *,
    most_ranks: int | None = None,
    nccl_failure: str = "",
) -> EngineChoice:
    """Choose for trainers in the order of their ranks.

    nccl_failure: why NCCL can't be had, where that has been tried

    Raises:
        MissingExtraError: no trainer has the engine.
    """
    engine, reason = _engine(check_wanted(wanted), trainers)
    able = able_on(engine, trainers)
    if not able:
        raise MissingExtraError(f"none of {len(trainers)} trainers has {engine}")
    if left := len(trainers) - len(able):
        reason += f"; {left} of {len(trainers)} trainers can't take part"
    ranks = [node for node in able for _ in range(ranks_of(trainers[node], engine))][:most_ranks]
    if engine == MLX or len(ranks) == 1:
        return EngineChoice(engine, tuple(ranks), reason)
    backend, why = choose_backend({node: trainers[node] for node in ranks}, nccl_failure)
    return EngineChoice(engine, tuple(ranks), f"{reason}; {why}", backend)


def able_on(engine: str, trainers: Mapping[NodeId, Hardware]) -> list[NodeId]:
    """Return who of them can take part in a gang on an engine, in their order."""
    able = [node for node, hardware in trainers.items() if engine in hardware.engines]
    macs = [node for node in able if trainers[node].system == _MAC]
    return macs if engine == MLX and macs else able  # Metal and a CPU or CUDA in one ring hang


def own_engine(machine: Hardware) -> str:
    """Return what a machine trains on by itself, where nobody has measured it."""
    is_mac = machine.system == _MAC and MLX in machine.engines
    return MLX if is_mac or TORCH not in machine.engines else TORCH


def writing_engine(wanted: str, machine: Hardware) -> str:
    """Return what a machine generates on: MLX on Macs, or where it is asked for and there.

    A model folder is the same on both.
    """
    if wanted == MLX and MLX in machine.engines:
        return MLX
    return own_engine(machine) if wanted == AUTO else TORCH


def ranks_of(machine: Hardware, engine: str) -> int:
    """Return how many ranks of an engine a machine has."""
    return max(1, min(len(machine.devices), MAX_RANKS_OF_ONE)) if engine == TORCH else 1


def check_wanted(wanted: str) -> str:
    """Return what people asked for, if it can be asked for; raises UsageError."""
    if wanted not in WANTED:
        raise UsageError(f"there is no engine {wanted}", f"engines: {', '.join(WANTED)}")
    return wanted


def _engine(wanted: str, trainers: Mapping[NodeId, Hardware]) -> tuple[str, str]:
    machines = trainers.values()
    if wanted != AUTO:
        return wanted, "as asked"
    if all(machine.system == _MAC and MLX in machine.engines for machine in machines):
        return MLX, "every trainer is a Mac with MLX"
    if any(TORCH in machine.engines for machine in machines):
        return TORCH, "it runs on every kind of machine"
    return MLX, "no trainer has torch"
