"""What hinders each engine from answering with a model on this machine.

Owns looking: programs on PATH, packages (without importing them), and what a model's config.json
asks for. Doesn't choose (`cluster.serving.engine_choice`). Blocks for milliseconds.
"""

import shutil
from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.serving.engine_choice import (
    CPU,
    CUDA,
    INSTALL,
    LLAMA,
    METAL,
    MLX,
    TRANSFORMERS,
    VLLM,
)
from jupiterd.cluster.serving.engine_memory import model_context
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.model_traits import why_not_on_mlx
from jupiterd.errors import UsageError
from jupiterd.gguf_file.architecture import architecture_of
from jupiterd.hardware.probe import installed

LLAMA_PROGRAM: Final = "llama-server"
LLAMA_PACKAGE: Final = "xllamacpp"
_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    MLX: ("mlx", "mlx_lm"),
    VLLM: ("vllm",),
    TRANSFORMERS: ("torch", "transformers", "fastapi", "uvicorn"),
}


def device_kind(machine: Hardware) -> str:
    """Return what engines compute on here: `metal`, `cuda` or `cpu`."""
    kinds = {gpu.kind for gpu in machine.working_gpus}
    return next((kind for kind in (METAL, CUDA) if kind in kinds), CPU)


def llama_program() -> str:
    """Return the path of llama.cpp's own server; empty where it isn't installed."""
    return shutil.which(LLAMA_PROGRAM) or ""


def hindrances(config: Mapping[str, Any], device: str) -> dict[str, str]:
    """Return engine -> what hinders it; an engine that can answer isn't in it.

    config: the content of the model's config.json
    """
    found = {engine: _missing(names) for engine, names in _PACKAGES.items()}
    found[LLAMA] = _of_llama(config)
    found[MLX] = found[MLX] or why_not_on_mlx(config, model_context(config))
    if device != CUDA:
        found[VLLM] = "it needs an NVIDIA GPU"
    return {engine: reason for engine, reason in found.items() if reason}


def _missing(packages: tuple[str, ...]) -> str:
    missing = sorted(set(packages) - set(installed(packages)))
    return f"{' and '.join(missing)} must be installed" if missing else ""


def _of_llama(config: Mapping[str, Any]) -> str:
    if not llama_program() and not installed((LLAMA_PACKAGE,)):
        return f"it isn't installed ({INSTALL[LLAMA]})"
    if _missing(("gguf",)):
        return "gguf must be installed"
    try:
        architecture_of(config)
    except UsageError as error:
        return error.message
    return ""
