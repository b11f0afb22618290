"""How each engine is started: its arguments and its variables.

Owns the words of four programs: mlx-lm's server, llama.cpp's, vLLM's and transformers'. Doesn't
know processes, nor where anything is installed.

Each is told to take any free port of the loopback: who has started it finds the port among those
on which its processes listen, so that no other program's is taken for it. Other users of a machine
reach that port, too, and so do pages in a browser: who asks must have a key, which the engine finds
in its environment. transformers' server knows none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.serving.engine_choice import CPU, CUDA, LLAMA, MLX, TRANSFORMERS, VLLM

HOST: Final = "127.0.0.1"
MLX_SERVER: Final = "jupiterd.workers.serving.mlx_server"
LLAMA_SERVER: Final = "jupiterd.workers.serving.llama_server"
GPU_MEMORY_SHARE: Final = 0.6
"""Of a GPU's memory that an engine may take: a screen and other programs need some, too."""

_CACHED_PROMPTS = 8


@dataclass(frozen=True)
class EngineOrder:
    """What an engine is to load, and how much of the machine it may take."""

    engine: str
    model: str
    """Path of the model's folder; of its GGUF file for llama.cpp."""
    context_tokens: int
    answers: int
    """That it writes at a time."""
    threads: int
    device: str = CPU
    """`cpu`, `cuda` or `metal`."""
    cache_bytes: int = 1 << 30
    program: str = ""
    """Path of llama.cpp's own `llama-server`; empty: the one of a Python package."""


@dataclass(frozen=True)
class EngineCommand:
    """A program to start."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """Beside what a worker of this machine has."""
    model_field: str
    """What a request to it names as its model."""


def engine_command(order: EngineOrder, python: str) -> EngineCommand:
    """Return how an engine is started; python: path of the interpreter that has its packages."""
    make = {MLX: _mlx, LLAMA: _llama, VLLM: _vllm, TRANSFORMERS: _transformers}[order.engine]
    return make(order, (python, "-P", "-m"))


def _mlx(order: EngineOrder, python: tuple[str, ...]) -> EngineCommand:
    argv = (
        *python, MLX_SERVER,
        "--model", order.model,
        *_any_port(),
        "--max-tokens", str(order.context_tokens),
        "--decode-concurrency", str(order.answers),
        "--prompt-cache-size", str(_CACHED_PROMPTS),
        "--prompt-cache-bytes", str(order.cache_bytes),
        "--log-level", "WARNING",
    )  # fmt: skip
    return EngineCommand(argv, {}, "default_model")


def _llama(order: EngineOrder, python: tuple[str, ...]) -> EngineCommand:
    program = (order.program,) if order.program else (*python, LLAMA_SERVER)
    argv = (
        *program,
        "--model", order.model,
        *_any_port(),
        "--ctx-size", str(order.context_tokens * order.answers),
        "--parallel", str(order.answers),
        "--threads", str(order.threads),
    )  # fmt: skip
    own = ("--jinja", "--poll", "0") if order.program else ()
    return EngineCommand((*argv, *own), {}, "model")


def _vllm(order: EngineOrder, python: tuple[str, ...]) -> EngineCommand:
    argv = (
        *python, "vllm.entrypoints.openai.api_server",
        "--model", order.model,
        "--served-model-name", "model",
        *_any_port(),
        "--max-model-len", str(order.context_tokens),
        "--gpu-memory-utilization", str(GPU_MEMORY_SHARE),
        "--disable-log-requests",
    )  # fmt: skip
    return EngineCommand(argv, {"VLLM_NO_USAGE_STATS": "1"}, "model")


def _transformers(order: EngineOrder, python: tuple[str, ...]) -> EngineCommand:
    has_cuda = order.device == CUDA
    batching = ("--continuous-batching", "--cb-max-memory-percent", str(GPU_MEMORY_SHARE))
    argv = (
        *python, "transformers.cli.transformers", "serve", order.model,
        "--device", "cuda:0" if has_cuda else CPU,
        *_any_port(),
        *(batching if has_cuda else ()),
    )  # fmt: skip
    return EngineCommand(argv, {}, order.model)


def _any_port() -> tuple[str, ...]:
    return ("--host", HOST, "--port", "0")
