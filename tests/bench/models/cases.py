"""The tiny models that are compared: each architecture as it is, and with what its family has.

Owns their configurations. Doesn't know engines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

VOCAB = 300
SEQ_LEN = 32

Fields = Mapping[str, Any]

USUAL: Fields = {
    "vocab_size": VOCAB, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 6, "num_key_value_heads": 3, "max_position_embeddings": 64,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
"""Three heads of keys, so that nothing relies on powers of two."""

LLAMA3: Fields = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
}  # fmt: skip
YARN: Fields = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32,
}  # fmt: skip
LINEAR: Fields = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
DYNAMIC: Fields = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
_ALTERNATING = ["sliding_attention", "full_attention"]


@dataclass(frozen=True)
class Case:
    """One tiny model."""

    architecture: str
    name: str
    changes: Fields = field(default_factory=dict[str, Any])

    def config(self) -> dict[str, Any]:
        """Return what its config.json says."""
        return {**USUAL, **OWN.get(self.architecture, {}), **self.changes}


OWN: Mapping[str, Fields] = {
    "gpt2": {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 64},
    "gpt_bigcode": {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 64, "n_inner": 192},
    "gptj": {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 64, "rotary_dim": 4},
    "gpt_neox": {"intermediate_size": 192, "num_attention_heads": 2, "num_key_value_heads": 2},
    "phi3": {"original_max_position_embeddings": 64},
    "gemma": {"head_dim": 8},
    "gemma2": {
        "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 64,
        "layer_types": _ALTERNATING * 2,
    },
    "gemma3_text": {
        "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 64,
        "layer_types": _ALTERNATING * 2,
    },
    "granite": {
        "embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.3,
        "attention_multiplier": 0.2,
    },
    "olmo3": {"sliding_window": 64, "layer_types": _ALTERNATING * 2},
    "cohere": {"logit_scale": 0.5},
    "cohere2": {"logit_scale": 0.5, "sliding_window": 64, "layer_types": _ALTERNATING * 2},
    "exaone4": {"sliding_window": 64, "layer_types": _ALTERNATING * 2},
    "helium": {"head_dim": 8},
    "seed_oss": {"head_dim": 8},
    "ernie4_5": {"head_dim": 8},
    "glm": {"head_dim": 8},
    "glm4": {"head_dim": 8},
    "hunyuan_v1_dense": {"head_dim": 8},
    "mistral": {"sliding_window": None},
    "ministral": {"head_dim": 8, "sliding_window": 64, "layer_types": _ALTERNATING * 2},
    "hrm_text": {"head_dim": 8, "num_hidden_layers": 1},
    "mixtral": {"num_local_experts": 4},
    "qwen2_moe": {
        "num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "gpt_oss": {
        "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 64,
        "layer_types": _ALTERNATING * 2,
    },
    "mamba": {"state_size": 8},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2, "block_auto_adjust_ff_dim": False},
    "nanochat": {"head_dim": 8},
}  # fmt: skip
"""What an architecture needs beside the usual sizes."""

NAMED = (
    "llama", "mistral", "qwen2", "qwen3", "gemma3_text", "phi3", "smollm3", "olmo2", "granite",
    "gpt2", "gpt_neox", "hrm_text",
)  # fmt: skip
OTHERS = ("cohere2", "gemma2", "olmo3")
"""Gemma and StarCoder2 were near the bound and aren't among them: mlx-lm seems to compute another
form of their activation."""


_ROPES: Mapping[str, Fields] = {"llama3": LLAMA3, "yarn": YARN, "linear": LINEAR}
_WITHOUT_ROPES = {"gpt2", "gpt_bigcode", "gptj", "mamba", "gemma3_text", "hrm_text", "phi3"}
_WINDOWED = {"mistral", "gemma2", "gemma3_text", "olmo3", "cohere2", "exaone4", "gpt_oss", "phi3"}
_OWN_VARIANTS: Mapping[str, Mapping[str, Fields]] = {
    "llama": {
        "dynamic positions": {"rope_parameters": DYNAMIC},
        "biases in attention": {"attention_bias": True},
        "biases in feed-forward parts": {"mlp_bias": True},
        "own head width": {"head_dim": 16},
        "one head of keys": {"num_key_value_heads": 1},
    },
    "qwen2": {
        "windows": {
            "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2,
            "layer_types": _ALTERNATING * 2,
        }
    },
    "qwen3": {
        "biases in attention": {"attention_bias": True},
        "own head width": {"head_dim": 16},
        "windows": {
            "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2,
            "layer_types": _ALTERNATING * 2,
        },
    },
    "olmo2": {"biases in attention": {"attention_bias": True}},
    "granite": {
        "biases in attention": {"attention_bias": True},
        "biases in feed-forward parts": {"mlp_bias": True},
    },
    "smollm3": {"biases in attention": {"attention_bias": True}},
    "phi3": {
        "positions in part": {
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5,
            }
        }
    },
    "gpt2": {
        "another activation": {"activation_function": "relu"},
        "unscaled attention": {"scale_attn_weights": False},
        "scaled by layer": {"scale_attn_by_inverse_layer_idx": True},
    },
    "gpt_neox": {
        "gelu_new": {"hidden_act": "gelu_new"},
        "relu": {"hidden_act": "relu"},
        "layers in sequence": {"use_parallel_residual": False},
        "no biases": {"attention_bias": False},
    },
    "gemma3_text": {
        "one in three sees all": {
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "num_hidden_layers": 3, "sliding_window": 8,
        },
        "linear positions": {
            "rope_parameters": {
                "full_attention": LINEAR,
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }
        },
    },
}  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield all of them."""
    for architecture in (*NAMED, *OTHERS):
        yield from cases_of(architecture)


def cases_of(architecture: str) -> Iterator[Case]:
    """Yield those of one architecture, the plain one first."""
    yield Case(architecture, "")
    for is_tied in (True, False):
        name = "tied" if is_tied else "untied"
        yield Case(architecture, name, {"tie_word_embeddings": is_tied})
    if architecture in _WINDOWED:
        yield Case(architecture, "windows", {"sliding_window": 8})
    if architecture not in _WITHOUT_ROPES:
        for kind, rope in _ROPES.items():
            yield Case(architecture, f"{kind} positions", {"rope_parameters": rope})
    for name, changes in _OWN_VARIANTS.get(architecture, {}).items():
        yield Case(architecture, name, changes)
