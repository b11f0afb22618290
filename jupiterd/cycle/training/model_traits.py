"""What a configuration asks of an engine beyond its sizes: activation, windows, scaled positions.

Owns these words, which the table of proven models is written in (`mlx_proven`), and what a model
lacks to be trained on MLX. Doesn't know engines.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cycle.training.known_architectures import TIED_BY_DEFAULT
from jupiterd.cycle.training.mlx_proven import LEFT_OUT, PROVEN

WINDOW: Final = "windows"
"""Some layers see fewer tokens than a sequence has."""

_ACTIVATIONS = ("hidden_act", "hidden_activation", "activation_function")
_SWITCHES: Final[Mapping[str, str]] = {
    "attention_bias": "biases in attention",
    "mlp_bias": "biases in feed-forward parts",
    "use_bidirectional_attention": "attention in both directions",
    "attn_logit_softcapping": "capped attention",
    "final_logit_softcapping": "capped logits",
    "use_qk_norm": "norms of queries and keys",
    "qk_layernorm": "norms of queries and keys",
    "clip_qkv": "clipped queries",
    "scale_attn_by_inverse_layer_idx": "attention scaled by the layer's number",
    "use_qkv_bias": "biases in attention",
    "parallel_attn": "parallel attention",
}
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_OFF: Final[Mapping[str, str]] = {
    "use_parallel_residual": "layers in sequence",
    "scale_attn_weights": "attention that isn't scaled",
}
"""Switches that are on where nobody says otherwise."""


def traits(config: Mapping[str, Any], seq_len: int) -> frozenset[str]:
    """Return what a model asks of an engine; config: Hugging Face's, of one causal model."""
    found = {_tie(config), _rope(config)}
    found |= {f"activation {config[key]}" for key in _ACTIVATIONS if config.get(key)}
    found |= {words for key, words in _SWITCHES.items() if config.get(key)}
    found |= {words for key, words in _OFF.items() if config.get(key) is False}
    if 0 < shortest_window(config) < seq_len:
        found.add(WINDOW)
    if _has_own_width(config):
        found.add("feed-forward parts of a width of their own")
    if _turns_in_part(config):
        found.add("positions in a part of each head")
    return frozenset(found)


def why_not_on_mlx(config: Mapping[str, Any], seq_len: int) -> str:
    """Say what hinders a model from being trained on MLX; empty: nothing."""
    kind = str(config.get("model_type", ""))
    if kind in LEFT_OUT:
        return LEFT_OUT[kind]
    if kind not in PROVEN and any(_count(config.get(key)) > 1 for key in _EXPERTS):
        return "it has experts, and mlx-lm holds those in other pieces than the files do"
    if kind not in PROVEN:
        return "mlx-lm has no such model, or nobody has compared it"
    missing = sorted(traits(config, seq_len) - PROVEN[kind])
    return f"{missing[0]}: not computed as transformers does" if missing else ""


def is_tied(config: Mapping[str, Any]) -> bool:
    """Say whether the output layer is the embedding; where nobody says, as transformers has it."""
    said = config.get("tie_word_embeddings")
    return bool(said) if said is not None else config.get("model_type") in TIED_BY_DEFAULT


def shortest_window(config: Mapping[str, Any]) -> int:
    """Return how many tokens the layer that sees fewest sees; 0: all see everything."""
    kinds = config.get("layer_types")
    if config.get("use_sliding_window") is False:
        return 0
    if isinstance(kinds, list) and "sliding_attention" not in kinds:
        return 0
    usual = _USUAL_WINDOWS.get(str(config.get("model_type")), 0)
    window = config.get("sliding_window", usual)
    return window if isinstance(window, int) else 0


_USUAL_WINDOWS: Final[Mapping[str, int]] = {"gemma2": 4096, "mistral": 4096}
"""Where a configuration doesn't say so."""


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _tie(config: Mapping[str, Any]) -> str:
    return "tied" if is_tied(config) else "untied"


def _rope(config: Mapping[str, Any]) -> str:
    new, old = config.get("rope_parameters"), config.get("rope_scaling")
    said = new if isinstance(new, Mapping) else old if isinstance(old, Mapping) else {}
    if isinstance(said.get("full_attention"), Mapping):
        said = said["full_attention"]
    kind = said.get("rope_type") or said.get("type") or "default"
    return f"rope {kind}"


def _has_own_width(config: Mapping[str, Any]) -> bool:
    """Say whether GPT's feed-forward parts aren't four times as wide as the rest."""
    width = config.get("n_inner") or (
        config.get("intermediate_size") if config.get("model_type") == "gpt_neox" else None
    )
    hidden = config.get("n_embd") or config.get("hidden_size")
    return isinstance(width, int) and isinstance(hidden, int) and width != 4 * hidden


def _turns_in_part(config: Mapping[str, Any]) -> bool:
    rope = config.get("rope_parameters")
    nested = rope.get("partial_rotary_factor") if isinstance(rope, Mapping) else None
    part = config.get("partial_rotary_factor") or config.get("rotary_pct") or nested
    return isinstance(part, int | float) and part < 1
