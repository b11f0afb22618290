"""How much memory an engine takes with a model, and how long a context it is given.

Owns that arithmetic. Doesn't know files or devices: sizes and config.json are told.

Bytes of a model's engine
    weights    as in the file; llama.cpp 2 a parameter
    cache      keys and values of each token of each answer at a time, 2 bytes a number
    program    Python and the libraries
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.cluster.serving.engine_choice import LLAMA, MLX, TRANSFORMERS, VLLM

PROGRAM_BYTES: Final[Mapping[str, int]] = {
    LLAMA: 150 << 20, MLX: 350 << 20, TRANSFORMERS: 500 << 20, VLLM: 2 << 30,
}  # fmt: skip
"""Measured with tiny models (`tests/bench/serving`); vLLM's is an estimate."""

MOST_ANSWERS: Final = 8
"""That one engine writes at a time; it lets others wait."""

CACHE_SHARE: Final = 0.25
"""Of the memory that is free beside the weights, at most, for keys and values."""

ROOM_SHARE: Final = 0.9
"""Of what is free, at most, for a new engine."""

SHORTEST_CONTEXT: Final = 512
USUAL_CONTEXT: Final = 2048
"""Where config.json names none."""

_CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx")
_CACHED_BYTES = 2


@dataclass(frozen=True)
class CachePlan:
    """What an engine keeps of answers while they are written."""

    context_tokens: int
    """Of a prompt and its answer together."""
    answers: int
    """How many may have so many at a time."""
    size_bytes: int


def model_context(config: Mapping[str, Any]) -> int:
    """Return how many tokens a model sees at a time, as its config.json says."""
    said = (config.get(name) for name in _CONTEXTS)
    return next((n for n in said if isinstance(n, int) and n > 0), USUAL_CONTEXT)


def token_bytes(config: Mapping[str, Any]) -> int:
    """Return the bytes of one token's keys and values in all layers."""
    layers = _number(config, "num_hidden_layers", "n_layer")
    heads = _number(config, "num_attention_heads", "n_head")
    keys = _number(config, "num_key_value_heads") or heads
    width = _number(config, "head_dim") or _number(config, "hidden_size", "n_embd") // max(1, heads)
    return max(1, 2 * layers * keys * width * _CACHED_BYTES)


def plan_cache(config: Mapping[str, Any], weight_bytes: int, free_bytes: int) -> CachePlan:
    """Return the longest context, and then the most answers at a time, that memory allows.

    free_bytes: before the weights are loaded
    """
    room = max(0, int((free_bytes - weight_bytes) * CACHE_SHARE))
    longest, each = model_context(config), token_bytes(config)
    least = min(longest, SHORTEST_CONTEXT)
    context = max(least, min(longest, room // each))
    answers = max(1, min(MOST_ANSWERS, room // (context * each)))
    return CachePlan(context, answers, context * answers * each)


def needed_bytes(engine: str, weight_bytes: int, cache: CachePlan) -> int:
    """Return what an engine takes in all."""
    return weight_bytes + cache.size_bytes + PROGRAM_BYTES[engine]


def has_room(needed: int, free_bytes: int, promised_bytes: int = 0) -> bool:
    """Say whether a new engine fits.

    promised_bytes: of engines that are loading, which don't show in what is free yet
    """
    return needed <= ROOM_SHARE * (free_bytes - promised_bytes)


def _number(config: Mapping[str, Any], *names: str) -> int:
    return next((n for name in names if isinstance(n := config.get(name), int)), 0)
