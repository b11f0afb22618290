"""What a GGUF file says of an architecture, and how its weights lie there.

Owns which architectures are known, and where llama.cpp computes otherwise than transformers: rotary
positions in pairs, matrices the other way round. Pure: it is given config.json. A test compares
each in llama.cpp with transformers (`test_gguf_file`); any other is left to its converter.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.errors import UsageError

Config = Mapping[str, Any]

IN_PAIRS: Final = frozenset({"llama", "mistral", "smollm3", "granite"})
"""Their rotary positions turn neighbours in llama.cpp, and halves of a head in transformers."""

NAMES: Final = {
    "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
    "smollm3": "smollm3", "olmo2": "olmo2", "granite": "granite", "gpt2": "gpt2",
}  # fmt: skip
"""model_type of a config.json -> what llama.cpp calls it."""

LLAMA_3: Final = "llama3"
READ_SLOWED: Final = frozenset({"llama", "mistral"})
"""Of which llama.cpp reads a factor for each rotary frequency."""
_OF_LLAMA_3: Final = ("factor", "low_freq_factor", "high_freq_factor")

_GRANITE: Final = {
    "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling", "attention.scale": "attention_multiplier",
}  # fmt: skip
_NO_POSITIONS_EVERY: Final = 4
"""SmolLM3's layers without positions, which llama.cpp takes for granted."""


@dataclass(frozen=True)
class Architecture:
    """What is written of one model."""

    name: str
    """As llama.cpp has it."""
    blocks: int
    fields: Mapping[str, int | float | str]
    """Keys below the name, such as `context_length`."""
    paired_heads: Callable[[str], int]
    """Name of a tensor -> number of heads whose halves are interleaved; 0: it is unchanged."""
    is_turned: Callable[[str], bool]
    """Returns whether a matrix is transposed."""
    slowed: Sequence[float] = ()
    """By how much each rotary frequency is divided, where llama3 positions say so."""


def architecture_of(config: Config) -> Architecture:
    """Return what is written of a model.

    Raises:
        UsageError: it isn't known here; the message says what isn't.
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
    """Return the base of the rotary positions, and how they are scaled, wherever it says so."""
    said = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    base = float(said.get("rope_theta") or config.get("rope_theta") or 10_000.0)
    return base, said


def _scaling_kind(said: Mapping[str, Any]) -> str:
    return str(said.get("rope_type") or said.get("type") or "default")


def _slowed(kind: str, config: Config) -> Sequence[float]:
    """Return by how much each frequency is divided: long waves by all of it, short ones by none."""
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
