"""Tiny checkpoints of the architectures that generators have, built here."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer

VOCAB = 320
KINDS: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}
CHAT_TEMPLATE = (
    "{% for message in messages %}<|user|>{{ message['content'] }}<|over|>{% endfor %}"
    "{% if add_generation_prompt %}<|model|>{% endif %}"
)


def write_model(folder: Path, kind: str, *, is_chat: bool = False, **changes: Any) -> Path:
    """Write a whole folder with random weights, as transformers saves it; return it."""
    config_class, model_class = KINDS[kind]
    fields: dict[str, Any] = {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
        "max_position_embeddings": 512, "rope_theta": 5e5, "eos_token_id": 0, "bos_token_id": 0,
        "tie_word_embeddings": False,
    }  # fmt: skip
    torch.manual_seed(7)
    model_class(config_class(**(fields | changes))).save_pretrained(folder)
    save_tokenizer(train_tokenizer(["the bread rises as the yeast rests\n"] * 3, VOCAB), folder)
    if is_chat:
        said = json.loads((folder / "tokenizer_config.json").read_text())
        said["chat_template"] = CHAT_TEMPLATE
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder
