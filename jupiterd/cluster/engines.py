"""Which engine a gang trains on, and who can take part.

Owns that choice. Doesn't know what an engine does, or how a gang is launched.

    wanted   the trainers are                     engine   who takes part
    auto     Macs with MLX, all of them           mlx      all
    auto     anything else, one with torch        torch    those with torch
    auto     anything else, none with torch       mlx      those with MLX
    torch    -                                    torch    those with torch
    mlx      -                                    mlx      those with MLX; Macs alone, if any is one
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.hardware import Hardware
from jupiterd.errors import MissingExtraError, UsageError
from jupiterd.ids import NodeId

TORCH: Final = "torch"
MLX: Final = "mlx"
AUTO: Final = "auto"
WANTED: Final = (AUTO, TORCH, MLX)

_MAC = "Darwin"
_LINKS = {TORCH: "gloo", MLX: "ring"}


@dataclass(frozen=True)
class EngineChoice:
    """An engine, the nodes that train on it, and why."""

    engine: str
    gang: tuple[NodeId, ...]
    reason: str

    @property
    def label(self) -> str:
        """Return the engine and what its ranks talk over, such as mlx/ring; one rank needs none."""
        return f"{self.engine}/{_LINKS[self.engine]}" if len(self.gang) > 1 else self.engine


def choose_engine(wanted: str, trainers: Mapping[NodeId, Hardware]) -> EngineChoice:
    """Choose for trainers in the order of their ranks.

    Raises:
        MissingExtraError: no trainer has the engine.
    """
    engine, reason = _engine(check_wanted(wanted), trainers)
    gang = tuple(node for node, hardware in trainers.items() if engine in hardware.engines)
    macs = tuple(node for node in gang if trainers[node].system == _MAC)
    if engine == MLX and macs:
        gang = macs  # Metal and a CPU or CUDA in one ring hang
    if not gang:
        raise MissingExtraError(f"none of {len(trainers)} trainers has {engine}")
    if left := len(trainers) - len(gang):
        reason += f"; {left} of {len(trainers)} trainers can't take part"
    return EngineChoice(engine, gang, reason)


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
