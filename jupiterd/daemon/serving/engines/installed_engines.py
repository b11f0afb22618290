"""Which engines that answer are installed on this machine.

Owns looking: programs on PATH, and packages, without importing them. Doesn't know models, nor what
an engine computes on (`engine_hindrances`).
"""

import shutil
from collections.abc import Mapping
from typing import Final

from jupiterd.cluster.serving.engine_choice import (
    AUTO,
    ENGINES,
    INSTALL,
    LLAMA,
    MLX,
    TRANSFORMERS,
    VLLM,
    check_engine,
)
from jupiterd.errors import MissingExtraError
from jupiterd.hardware.probe import installed

LLAMA_PROGRAM: Final = "llama-server"
LLAMA_PACKAGE: Final = "xllamacpp"
_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    MLX: ("mlx", "mlx_lm"),
    VLLM: ("vllm",),
    TRANSFORMERS: ("torch", "transformers", "fastapi", "uvicorn"),
}


def llama_program() -> str:
    """Return the path of llama.cpp's own server; empty where it isn't installed."""
    return shutil.which(LLAMA_PROGRAM) or ""


def check_installed(engine: str) -> None:
    """Raise UsageError for no engine, MissingExtraError for one that isn't installed here."""
    if engine != AUTO and (reason := why_not_installed(check_engine(engine))):
        raise MissingExtraError(f"{engine} can't answer here: {reason}", INSTALL[engine])


def can_answer() -> bool:
    """Say whether any engine is installed."""
    return not all(map(why_not_installed, ENGINES))


def why_not_installed(engine: str) -> str:
    """Return what is missing for an engine; empty where nothing is."""
    if engine != LLAMA:
        return _missing(_PACKAGES[engine])
    if not llama_program() and not installed((LLAMA_PACKAGE,)):
        return f"it isn't installed ({INSTALL[LLAMA]})"
    return _missing(("gguf",))


def _missing(packages: tuple[str, ...]) -> str:
    missing = sorted(set(packages) - set(installed(packages)))
    return f"{' and '.join(missing)} must be installed" if missing else ""
