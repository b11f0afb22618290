"""What a shape means in Hugging Face's words: the configuration of a model.

Owns config.json and generation_config.json of a checkpoint. Doesn't know weights or engines.
"""

from typing import Any

from transformers import AutoConfig, PreTrainedConfig
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from jupiterd.cycle.data.special_tokens import special_token_ids
from jupiterd.cycle.training.adapters.given_quantized import without_quantization
from jupiterd.cycle.training.architectures import GPT2, QWEN3
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.errors import UsageError
from jupiterd.workers.train.architectures.older_fields import older_fields
from jupiterd.workers.train.first_weights import INIT_STD

_REMOTE_CODE = ("auto_map", "model_file", "trust_remote_code")
"""Fields of a config.json that would have somebody's code run."""


def model_config(shape: ModelShape, end_token: int = 0) -> PreTrainedConfig:
    """Return the configuration of a model of this shape; `end_token` ends every document.

    What a brought model says of its special tokens stays. Nothing is dropped at random: a step that
    is done again must be the same step.

    Raises:
        UsageError: transformers has no such architecture.
    """
    if shape.architecture == QWEN3 and not shape.config:
        return _qwen3(shape, end_token)
    said = without_quantization(shape.config)
    given = {key: value for key, value in said.items() if key not in _REMOTE_CODE}
    if shape.architecture == GPT2 and not given:
        given = _gpt2_fields(shape)
    ids = special_token_ids(given, end_token, shape.vocab_size)
    fields = {**given, **ids, "vocab_size": shape.vocab_size}
    fields.pop("model_type", None)
    try:
        return _still(AutoConfig.for_model(shape.architecture, **fields))
    except (ValueError, TypeError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"transformers can't make a {shape.architecture or 'nameless'} model: {reason}",
            "give the folder of a causal language model; its config.json says model_type",
        ) from error


def config_fields(config: PreTrainedConfig) -> dict[str, Any]:
    """Return what config.json says: readable by transformers 5 and by mlx-lm alike.

    transformers 5 reads the rope base from `rope_parameters`, mlx-lm from `rope_theta`, and so on.
    """
    fields: dict[str, Any] = config.to_dict()
    public = {name: value for name, value in fields.items() if not name.startswith("_")}
    said = {"dtype": "float32", "use_cache": True}
    return public | older_fields(fields) | said | _architectures(config)


def generation_fields(config: PreTrainedConfig) -> dict[str, Any]:
    """Return what generation_config.json says."""
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return {name: getattr(config, name) for name in names}


def _architectures(config: PreTrainedConfig) -> dict[str, list[str]]:
    if isinstance(config, Qwen3Config):
        return {"architectures": ["Qwen3ForCausalLM"]}
    return {"architectures": list(config.architectures or [])}


def _still(config: PreTrainedConfig) -> PreTrainedConfig:
    for name, value in config.to_dict().items():
        if name.endswith(("dropout", "pdrop")) and isinstance(value, float):
            setattr(config, name, 0.0)
    return config


def _qwen3(shape: ModelShape, end_token: int) -> Qwen3Config:
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


def _gpt2_fields(shape: ModelShape) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "n_positions": shape.seq_len,
        "n_embd": shape.hidden,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_inner": shape.ff,
        "tie_word_embeddings": shape.tied,
        "initializer_range": INIT_STD,
    }
