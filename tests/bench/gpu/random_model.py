"""A model folder of random weights with a real tokenizer, made of Python's own sources.

Owns the folder, and the text that it is made of. How fast a model writes or is scored doesn't
depend on what it has learnt.
"""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig

from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer
from jupiterd.workers.train.model_config import model_config
from tests.bench.train.single import preset

SMOLLM2_135M: dict[str, Any] = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
"""As its config.json says."""

LEAST_CHARACTERS, MOST_CHARACTERS = 2_000, 8_000


def texts(count: int) -> Iterator[str]:
    """Yield the beginnings of so many of the standard library's modules."""
    found = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if len(text) >= LEAST_CHARACTERS:
            yield text[:MOST_CHARACTERS]
            found += 1
        if found == count:
            return


def configs() -> dict[str, PreTrainedConfig]:
    """Return the shapes that write."""
    return {"25m": model_config(preset("25m")), "SmolLM2-135M": LlamaConfig(**SMOLLM2_135M)}


def write_model(folder: Path, config: PreTrainedConfig) -> Path:
    """Write a folder that Jupiter's workers open."""
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    save_tokenizer(train_tokenizer(texts(200), 4096), folder)
    return folder
