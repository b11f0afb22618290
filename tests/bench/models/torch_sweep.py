"""Every causal language model of the installed transformers, tiny and random: can torch train it?

Owns trying one. A model must be made from its configuration, must not see the tokens that it is to
predict, and must learn by a backward pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

MOST_PARAMETERS = 60_000_000
TOKENS = 24
CHANGED = 4
"""The last tokens, which none before them may see."""
MOST_LEAK = 1e-6
"""Of the logits' spread."""

_USUAL: Mapping[str, Any] = {
    "vocab_size": 320, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
_EXPERTS: Mapping[str, Any] = {
    "moe_intermediate_size": 16, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "shared_expert_intermediate_size": 16, "n_shared_experts": 1, "num_shared_experts": 1,
}  # fmt: skip
_WAYS: Sequence[Mapping[str, Any]] = (
    {},
    {"head_dim": 8},
    {"head_dim": 8, "num_key_value_heads": 4},
    {"num_key_value_heads": 4, "rotary_dim": 4, "attention_types": [[["global"], 2]]},
    {
        **_EXPERTS, "hidden_size": 64, "head_dim": 16, "num_key_value_heads": 4, "q_lora_rank": 16,
        "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16,
    },
    {
        **_EXPERTS, "hidden_size": 64, "head_dim": 16, "num_hidden_layers": 4,
        "layer_types": ["linear_attention", "full_attention"] * 2, "linear_num_key_heads": 2,
        "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    },
    {
        "state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "mamba_n_heads": 8,
        "mamba_d_head": 8, "mamba_d_ssm": 64, "mamba_n_groups": 1, "mamba_d_state": 8,
        "chunk_size": 16, "expand": 2, "mamba_expand": 2,
    },
)  # fmt: skip
"""Sizes by which one family or another can be made; the first that works is taken."""


@dataclass(frozen=True)
class Tried:
    """What came of one architecture."""

    architecture: str
    leak: float = 0.0
    """How much logits change by tokens behind them, as a share of their spread."""
    error: str = ""

    @property
    def sees_ahead(self) -> bool:
        """Say whether a token sees those behind it."""
        return not self.error and self.leak > MOST_LEAK


def known() -> list[str]:
    """Return the causal language models of the installed transformers."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def is_tied_by_default(architecture: str) -> bool:
    """Say whether transformers ties the output layer where a configuration doesn't say so."""
    try:
        return bool(CONFIG_MAPPING[architecture]().to_dict().get("tie_word_embeddings"))
    except Exception:  # noqa: BLE001 - whatever a configuration without sizes raises
        return False


def tried(architecture: str) -> Tried:
    """Make a tiny model, and look whether it can be trained."""
    error = ""
    for way in _WAYS:
        try:
            return Tried(architecture, _leak(_config(architecture, way)))
        except Exception as found:  # noqa: BLE001 - the next way may work
            lines = str(found).splitlines() or [""]
            error = error or f"{type(found).__name__}: {lines[0][:90]}"
    return Tried(architecture, error=error)


def _config(architecture: str, way: Mapping[str, Any]) -> Any:
    kind: Any = CONFIG_MAPPING[architecture]
    usual = kind().to_dict()
    own_names: Mapping[str, str] = getattr(kind, "attribute_map", None) or {}
    given = {own_names.get(name, name): value for name, value in {**_USUAL, **way}.items()}
    fields = {name: value for name, value in given.items() if name in usual}
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        if usual.get(name) is not None:
            fields[name] = [0] if isinstance(usual[name], list) else 0
    return kind(**fields)


def _leak(config: Any) -> float:
    make: Any = AutoModelForCausalLM.from_config
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in make(config).parameters())
    if size > MOST_PARAMETERS:
        raise ValueError(f"no tiny one can be made: {size:,} parameters")
    torch.manual_seed(0)
    model = make(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1 and parameter.requires_grad:
            parameter.data.normal_(0, 0.1)
    ids = torch.randint(3, 300, (1, TOKENS))
    other = ids.clone()
    other[0, -CHANGED:] = (ids[0, -CHANGED:] + 7) % 300 + 3
    with torch.no_grad():
        first, second = (model(input_ids=i, use_cache=False).logits for i in (ids, other))
    model.train()
    logits = model(input_ids=ids, use_cache=False).logits
    logits.float().logsumexp(-1).mean().backward()
    kept = slice(0, TOKENS - CHANGED)
    spread = first.max() - first.min()
    return float((first[0, kept] - second[0, kept]).abs().max() / spread)
