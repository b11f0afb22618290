"""Which engine answers with a model on a machine, and why the others don't.

Owns the order of engines for each kind of device, and the words for those passed over. Doesn't know
how an engine is started, nor how a machine is probed: what hinders an engine is told.

    device   first        then
    metal    mlx          llama.cpp, transformers
    cuda     vllm         transformers, llama.cpp, mlx
    cpu      llama.cpp    mlx, transformers

On CPUs the order is what was measured (docs/benchmarks.md, "Engines that answer").
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jupiterd.errors import MissingExtraError, UsageError, WorkFailedError

AUTO: Final = "auto"
LLAMA: Final = "llama.cpp"
MLX: Final = "mlx"
TRANSFORMERS: Final = "transformers"
VLLM: Final = "vllm"
ENGINES: Final = (LLAMA, MLX, VLLM, TRANSFORMERS)


class AnsweringEngine(StrEnum):
    """What an owner may write of engines."""

    AUTO = AUTO
    LLAMA = LLAMA
    MLX = MLX
    VLLM = VLLM
    TRANSFORMERS = TRANSFORMERS


METAL: Final = "metal"
CUDA: Final = "cuda"
CPU: Final = "cpu"

ORDER: Final[Mapping[str, tuple[str, ...]]] = {
    METAL: (MLX, LLAMA, TRANSFORMERS),
    CUDA: (VLLM, TRANSFORMERS, LLAMA, MLX),
    CPU: (LLAMA, MLX, TRANSFORMERS),
}

INSTALL: Final[Mapping[str, str]] = {
    LLAMA: "put llama.cpp's llama-server on PATH, or pip install 'jupiterd[serving]'",
    MLX: "pip install 'jupiterd[cpu]' (on Macs 'jupiterd[mac]')",
    VLLM: "pip install vllm, on Linux with an NVIDIA GPU",
    TRANSFORMERS: "pip install 'jupiterd[cpu,serving]' (nvidia or mac in the place of cpu)",
}
"""What makes an engine available."""


@dataclass(frozen=True)
class EngineChoice:
    """The engines that may answer, best first, and why each of the others doesn't."""

    engines: tuple[str, ...]
    passed_over: tuple[tuple[str, str], ...] = ()
    """(engine, reason), in the order in which they would have been taken."""

    @property
    def words(self) -> str:
        """Return the choice in one line."""
        why = "".join(f"; not {engine}: {reason}" for engine, reason in self.passed_over)
        return f"{self.engines[0]}{why}"


def choose_engines(device: str, hindrances: Mapping[str, str], wanted: str = AUTO) -> EngineChoice:
    """Return which engines can answer with a model on a device.

    Args:
        device: `metal`, `cuda` or `cpu`.
        hindrances: engine -> what hinders it here, such as that it isn't installed; engines that
            aren't named can answer.
        wanted: the engine that a user forces; `auto`: none.

    Raises:
        UsageError: there is no such engine.
        MissingExtraError: none can answer; the message says why for each.
    """
    asked = ORDER[device] if wanted == AUTO else (check_engine(wanted),)
    able = tuple(engine for engine in asked if not hindrances.get(engine))
    passed = tuple((engine, hindrances[engine]) for engine in asked if hindrances.get(engine))
    if not able:
        raise none_can_answer(passed)
    return EngineChoice(able, passed)


def none_can_answer(passed: tuple[tuple[str, str], ...]) -> MissingExtraError:
    """Return the error for a model that no engine answers with; passed: (engine, reason)."""
    why = "; ".join(f"{engine}: {reason}" for engine, reason in passed)
    return MissingExtraError(
        f"no engine can answer with this model here: {why}", INSTALL[passed[0][0]]
    )


def none_loads(model: str, passed: tuple[tuple[str, str], ...], log_name: str) -> WorkFailedError:
    """Return the error for a model that no engine could load.

    Args:
        model: its name.
        passed: (engine, reason) of each that was tried, or couldn't be.
        log_name: of the file in logs/ that has what they wrote.
    """
    why = "; ".join(f"{engine}: {reason}" for engine, reason in passed)
    return WorkFailedError(
        f"no engine can load {model}: {why}",
        f"logs/{log_name} of the state folder has their output",
    )


def check_engine(wanted: str) -> str:
    """Return an engine's name; raises UsageError where there is none of that name."""
    if wanted not in ENGINES:
        raise UsageError(f"there is no engine {wanted}", f"engines: {AUTO}, {', '.join(ENGINES)}")
    return wanted
