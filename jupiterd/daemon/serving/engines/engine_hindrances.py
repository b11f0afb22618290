"""What hinders each engine from answering with a model on this machine.

Owns looking: what isn't installed, and what a model's config.json asks for. Doesn't choose
(`cluster.serving.engine_choice`). Blocks for milliseconds.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.serving.engine_choice import CPU, CUDA, ENGINES, LLAMA, METAL, MLX, VLLM
from jupiterd.cluster.serving.engine_memory import model_context
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.model_traits import why_not_on_mlx
from jupiterd.daemon.serving.engines.installed_engines import why_not_installed
from jupiterd.errors import UsageError
from jupiterd.gguf_file.architecture import architecture_of


def device_kind(machine: Hardware) -> str:
    """Return what engines compute on here: `metal`, `cuda` or `cpu`."""
    kinds = {gpu.kind for gpu in machine.working_gpus}
    return next((kind for kind in (METAL, CUDA) if kind in kinds), CPU)


MERGING: Final = frozenset({LLAMA, MLX})
"""Engines that our launchers give an adapter and its base as one model."""


def hindrances(
    config: Mapping[str, Any], device: str, *, has_adapter: bool = False
) -> dict[str, str]:
    """Return engine -> what hinders it; an engine that can answer isn't in it.

    config: the content of the model's config.json; has_adapter: it is an adapter and its base
    """
    found = {engine: why_not_installed(engine) for engine in ENGINES}
    if has_adapter:
        for engine in found.keys() - MERGING:
            found[engine] = (
                found[engine] or "it isn't given adapters: export the model with --merge"
            )
    found[LLAMA] = found[LLAMA] or _of_llama(config)
    found[MLX] = found[MLX] or why_not_on_mlx(config, model_context(config))
    if device != CUDA:
        found[VLLM] = "it needs an NVIDIA GPU"
    return {engine: reason for engine, reason in found.items() if reason}


def _of_llama(config: Mapping[str, Any]) -> str:
    try:
        architecture_of(config)
    except UsageError as error:
        return error.message
    return ""
