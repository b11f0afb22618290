"""What a shape means in Hugging Face's words: the configuration of a Qwen3 model.

Owns config.json and generation_config.json of a checkpoint. Doesn't know weights or engines.
"""

from typing import Any

from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from jupiterd.cycle.plan import ModelShape
from jupiterd.workers.train.first_weights import INIT_STD


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


def config_fields(config: Qwen3Config) -> dict[str, Any]:
    """Return what config.json says: readable by transformers 5 and by mlx-lm alike.

    transformers 5 reads the rope base from `rope_parameters`, mlx-lm from `rope_theta`.
    """
    fields: dict[str, Any] = config.to_dict()
    rope: dict[str, Any] = fields["rope_parameters"]
    kept = {name: value for name, value in fields.items() if not name.startswith("_")}
    return kept | {
        "architectures": ["Qwen3ForCausalLM"],
        "dtype": "float32",
        "rope_theta": rope["rope_theta"],
        "use_cache": True,
    }


def generation_fields(config: Qwen3Config) -> dict[str, Any]:
    """Return what generation_config.json says."""
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return {name: getattr(config, name) for name in names}
