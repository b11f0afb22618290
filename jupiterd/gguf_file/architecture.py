"""The GGUF fields of an architecture, and the layout of its weights.

Owns the list of known architectures, and where llama.cpp's layout differs from that of
transformers: interleaved rotary pairs, transposed matrices. Pure: takes the content of config.json.
A test compares each architecture in llama.cpp with transformers (`test_gguf_file`); llama.cpp's
converter writes the others.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.errors import UsageError

Config = Mapping[str, Any]

IN_PAIRS: Final = frozenset({"llama", "mistral", "smollm3", "granite"})
"""Architectures whose rotary pairs are neighbours in llama.cpp, and head halves in transformers."""

NAMES: Final = {
    "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
    "smollm3": "smollm3", "olmo2": "olmo2", "granite": "granite", "gpt2": "gpt2",
}  # fmt: skip
"""model_type in config.json -> llama.cpp's name."""

LLAMA_3: Final = "llama3"
READ_SLOWED: Final = frozenset({"llama", "mistral"})
"""model_types for which llama.cpp reads a factor for each rotary frequency."""
_OF_LLAMA_3: Final = ("factor", "low_freq_factor", "high_freq_factor")

_GRANITE: Final = {
    "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling", "attention.scale": "attention_multiplier",
}  # fmt: skip
_NO_POSITIONS_EVERY: Final = 4
"""Every fourth layer of SmolLM3 has no positions; llama.cpp assumes this."""


@dataclass(frozen=True)
class Architecture:
    """The fields and the layout of one model in a GGUF file."""

    name: str
    """llama.cpp's name of the architecture."""
    blocks: int
    fields: Mapping[str, int | float | str]
    """Keys without the prefix `NAME.`, such as `context_length`, and their values."""
    paired_heads: Callable[[str], int]
    """Name of a tensor -> number of heads whose halves are interleaved; 0: it is unchanged."""
    is_turned: Callable[[str], bool]
    """Returns whether a matrix is transposed."""
    slowed: Sequence[float] = ()
    """The divisor of each rotary frequency with llama3 scaling; empty: no such scaling."""


def architecture_of(config: Config) -> Architecture:
    """Return the fields and the layout of a model.

    Raises:
        UsageError: the model isn't known here; the message says why.
    """
    kind = str(config.get("model_type", ""))
    if kind not in NAMES:
        raise UsageError(f"no {kind or 'nameless'} model is written as GGUF here")
    try:
        return _gpt2(config) if kind == "gpt2" else _decoder(kind, config)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"config.json can't be read for GGUF: {error!r}") from error


def _decoder(kind: str, config: Config) -> Architecture:
    _check(kind, config)
    heads, keys = _heads(config)
    pairs = {"q_proj": heads, "k_proj": keys} if kind in IN_PAIRS else {}
    return Architecture(
        NAMES[kind],
        int(config["num_hidden_layers"]),
        _decoder_fields(config, kind),
        lambda name: next((n for part, n in pairs.items() if f".{part}." in name), 0),
        lambda _: False,
        _slowed(kind, config),
    )


def _decoder_fields(config: Config, kind: str) -> dict[str, int | float | str]:
    heads, keys = _heads(config)
    width = _head_width(config)
    more = {key: float(config[name]) for key, name in _GRANITE.items()} if kind == "granite" else {}
    return {
        "vocab_size": int(config["vocab_size"]),
        "context_length": int(config["max_position_embeddings"]),
        "embedding_length": int(config["hidden_size"]),
        "block_count": int(config["num_hidden_layers"]),
        "feed_forward_length": int(config["intermediate_size"]),
        "attention.head_count": heads,
        "attention.head_count_kv": keys,
        "attention.key_length": width,
        "attention.value_length": width,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.dimension_count": width,
        "rope.freq_base": _rope(config)[0],
        **_scaling(config),
        **more,
    }


def _gpt2(config: Config) -> Architecture:
    width, blocks = int(config["n_embd"]), int(config["n_layer"])
    if config.get("activation_function", "gelu_new") != "gelu_new":
        raise UsageError("no gpt2 model with another activation is written as GGUF here")
    fields = {
        "vocab_size": int(config["vocab_size"]),
        "context_length": int(config["n_positions"]),
        "embedding_length": width,
        "block_count": blocks,
        "feed_forward_length": int(config.get("n_inner") or 4 * width),
        "attention.head_count": int(config["n_head"]),
        "attention.layer_norm_epsilon": float(config.get("layer_norm_epsilon", 1e-5)),
    }
    turned = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
    return Architecture("gpt2", blocks, fields, lambda _: 0, lambda name: name.endswith(turned))


def _check(kind: str, config: Config) -> None:
    if config.get("hidden_act", "silu") != "silu":
        raise UsageError(f"no {kind} model with {config['hidden_act']} is written as GGUF here")
    if config.get("partial_rotary_factor", 1) != 1 or config.get("use_sliding_window"):
        raise UsageError(f"no such {kind} model is written as GGUF here: its attention is special")
    layers = range(1, int(config["num_hidden_layers"]) + 1)
    if kind == "smollm3" and list(config.get("no_rope_layers") or ()) != [
        int(layer % _NO_POSITIONS_EVERY != 0) for layer in layers
    ]:
        raise UsageError("no such smollm3 model is written as GGUF here: its positions are special")


def _heads(config: Config) -> tuple[int, int]:
    heads = int(config["num_attention_heads"])
    return heads, int(config.get("num_key_value_heads") or heads)


def _head_width(config: Config) -> int:
    width = config.get("head_dim")
    return int(width or config["hidden_size"] // config["num_attention_heads"])


def _rope(config: Config) -> tuple[float, Mapping[str, Any]]:
    """Return the base of the rotary positions and their scaling settings, old or new keys."""
    said = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    base = float(said.get("rope_theta") or config.get("rope_theta") or 10_000.0)
    return base, said


def _scaling_kind(said: Mapping[str, Any]) -> str:
    return str(said.get("rope_type") or said.get("type") or "default")


def _slowed(kind: str, config: Config) -> Sequence[float]:
    """Return the divisor of each frequency: the whole factor for long waves, 1 for short ones."""
    base, said = _rope(config)
    if _scaling_kind(said) != LLAMA_3:
        return ()
    if kind not in READ_SLOWED:
        raise UsageError(f"no {kind} model with {LLAMA_3} positions is written as GGUF here")
    factor, low, high = (float(said[name]) for name in _OF_LLAMA_3)
    known, width = float(said["original_max_position_embeddings"]), _head_width(config)

    def slowed(pair: int) -> float:
        turns = known / (2 * math.pi * base ** (2 * pair / width))
        smooth = min(1.0, max(0.0, (turns - low) / (high - low)))
        return 1 / ((1 - smooth) / factor + smooth)

    return [slowed(pair) for pair in range(width // 2)]


def _scaling(config: Config) -> dict[str, int | float | str]:
    said = _rope(config)[1]
    kind = _scaling_kind(said)
    if kind in {"default", LLAMA_3}:
        return {}
    if kind != "linear":
        raise UsageError(f"no model with {kind} positions is written as GGUF here")
    return {"rope.scaling.type": "linear", "rope.scaling.factor": float(said["factor"])}
