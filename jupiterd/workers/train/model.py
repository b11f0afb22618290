"""A Qwen3 model made from a shape.

Owns how our shape maps onto transformers' configuration, and the first weights. Doesn't know
training, nor files.
"""

from typing import Any

import torch
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

from jupiterd.cycle.plan import ModelShape

INIT_STD = 0.02
"""Spread of the first weights; norms begin as ones."""


def model_config(shape: ModelShape, end_token: int = 0) -> Qwen3Config:
    """Return the configuration of a model of this shape; `end_token` ends every document."""
    fields: dict[str, Any] = {"attn_implementation": "sdpa"}  # unknown to the type checker
    return Qwen3Config(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden,
        intermediate_size=shape.ff,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.seq_len,
        tie_word_embeddings=shape.tied,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        initializer_range=INIT_STD,
        attention_bias=False,
        bos_token_id=end_token,
        eos_token_id=end_token,
        pad_token_id=end_token,
        **fields,
    )


def make_model(shape: ModelShape, seed: int, end_token: int = 0) -> Qwen3ForCausalLM:
    """Return a model (float32, CPU) whose weights depend on nothing but the shape and the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(model_config(shape, end_token))
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=INIT_STD)
            elif name.endswith("norm.weight"):
                torch.nn.init.ones_(parameter)
    return model.float()


def config_fields(model: Qwen3ForCausalLM) -> dict[str, Any]:
    """Return what config.json says: readable by transformers 5 and by mlx-lm alike.

    transformers 5 reads the rope base from `rope_parameters`, mlx-lm from `rope_theta`.
    """
    fields: dict[str, Any] = model.config.to_dict()
    rope: dict[str, Any] = fields["rope_parameters"]
    kept = {name: value for name, value in fields.items() if not name.startswith("_")}
    return kept | {
        "architectures": [type(model).__name__],
        "dtype": "float32",
        "rope_theta": rope["rope_theta"],
        "use_cache": True,
    }
