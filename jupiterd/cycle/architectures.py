"""What is known of model architectures: names of their sizes, and how many numbers they learn.

Owns the way between Hugging Face's configurations and a shape's own words. Doesn't know files or
engines. torch trains any causal language model that transformers has; MLX those it can load.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from jupiterd.errors import UsageError

QWEN3: Final = "qwen3"
GPT2: Final = "gpt2"

ON_MLX: Final = frozenset({QWEN3})
"""What mlx-lm computes as transformers does, from the same folder; GPT-2 isn't among them."""

MAX_VOCAB = 1 << 20
"""No public model has as many entries; ids take 32 bits where they must (`data.token_width`)."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "seq_len": ("max_position_embeddings", "n_positions"),
    "hidden": ("hidden_size", "n_embd"),
    "layers": ("num_hidden_layers", "n_layer"),
    "heads": ("num_attention_heads", "n_head"),
}
_MAX_SEQ_LEN = 1024
"""Longest sequence that is taken from a configuration unasked."""


class Sizes(Protocol):
    """The sizes of a model."""

    @property
    def architecture(self) -> str: ...  # noqa: D102 - as ModelShape says
    @property
    def vocab_size(self) -> int: ...  # noqa: D102
    @property
    def seq_len(self) -> int: ...  # noqa: D102
    @property
    def hidden(self) -> int: ...  # noqa: D102
    @property
    def layers(self) -> int: ...  # noqa: D102
    @property
    def ff(self) -> int: ...  # noqa: D102
    @property
    def heads(self) -> int: ...  # noqa: D102
    @property
    def kv_heads(self) -> int: ...  # noqa: D102
    @property
    def head_dim(self) -> int: ...  # noqa: D102
    @property
    def tied(self) -> bool: ...  # noqa: D102


def check_engine(engine: str, architecture: str) -> None:
    """Make sure that an engine can train an architecture.

    Raises:
        UsageError: it can't; the message says what does.
    """
    if engine == "mlx" and architecture not in ON_MLX:
        raise UsageError(
            f"MLX can't load a {architecture} model",
            f"train it on torch: --engine torch; MLX trains {', '.join(sorted(ON_MLX))}",
        )


def shape_fields(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a shape's fields, as config.json of a causal language model says them.

    Raises:
        UsageError: it says too little, or something that can't be trained here.
    """
    found = {field: _first(name, config, keys) for field, keys in _NAMES.items()}
    if found["vocab_size"] > MAX_VOCAB:
        raise UsageError(
            f"{name} has a vocabulary of {found['vocab_size']:,}",
            f"choose a model with a vocabulary of at most {MAX_VOCAB:,}",
        )
    hidden, heads = found["hidden"], found["heads"]
    return found | {
        "seq_len": min(found["seq_len"], _MAX_SEQ_LEN),
        "ff": int(config.get("intermediate_size") or config.get("n_inner") or 4 * hidden),
        "kv_heads": int(config.get("num_key_value_heads") or heads),
        "head_dim": int(config.get("head_dim") or hidden // heads),
        "rope_theta": _rope_theta(config),
        "tied": bool(config.get("tie_word_embeddings", True)),
        "architecture": str(config.get("model_type", "")),
        "config": dict(config),
    }


def parameter_count(shape: Sizes) -> int:
    """Return how many numbers a model of this shape learns; tied weights count once.

    Exact for Qwen3 and GPT-2, and for others as if they were Qwen3.
    """
    embedding = shape.vocab_size * shape.hidden * (1 if shape.tied else 2)
    if shape.architecture == GPT2:
        return embedding + _gpt2_body(shape)
    norms = 2 * shape.hidden + 2 * shape.head_dim
    return embedding + shape.layers * (_matrices(shape) + norms) + shape.hidden


def matrix_parameters(shape: Sizes) -> int:
    """Return how many of them are in the layers' matrices: those that Muon takes."""
    return shape.layers * _matrices(shape)


def _matrices(shape: Sizes) -> int:
    attention = shape.hidden * shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
    return attention + (2 if shape.architecture == GPT2 else 3) * shape.hidden * shape.ff


def _gpt2_body(shape: Sizes) -> int:
    """Positions, layers with their biases and two norms, and the last norm."""
    hidden = shape.hidden
    biases = 3 * hidden + hidden + shape.ff + hidden
    layer = _matrices(shape) + biases + 4 * hidden
    return shape.seq_len * hidden + shape.layers * layer + 2 * hidden


def _first(name: str, config: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    value = next((config[key] for key in keys if isinstance(config.get(key), int)), None)
    if value is None or value < 1:
        raise UsageError(
            f"config.json of {name} says no {keys[0]}", "give the folder of a causal language model"
        )
    return int(value)


def _rope_theta(config: Mapping[str, Any]) -> float:
    rope = config.get("rope_parameters")
    nested = rope.get("rope_theta") if isinstance(rope, Mapping) else None
    return float(config.get("rope_theta") or nested or 100_000.0)
