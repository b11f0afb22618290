"""A tiny model as its maker would put it on the hub, and ways in which others are no model."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

from tests.support.sources.model_hub import HubFolder

NAME = "team/prose"

CONFIG: Mapping[str, Any] = {
    "model_type": "llama", "vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1,
    "num_attention_heads": 2, "max_position_embeddings": 32,
    "tie_word_embeddings": True,
}  # fmt: skip
SHARDS = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"
EMBEDDING, NORM = "model.embed_tokens.weight", "model.norm.weight"
LARGE_ROWS = 80_000
"""Of the second shard: 1.3 MB, so that it can be cut off."""


def whole(**changes: Any) -> dict[str, bytes]:
    """Return the files of a model in two shards, with what its maker left lying about."""
    config = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
    large = np.arange(LARGE_ROWS * 4, dtype=np.float32).reshape(-1, 4)
    return {
        "config.json": json.dumps(config).encode(),
        SHARDS[0]: save({EMBEDDING: np.ones((8, 4), dtype=np.float32)}),
        SHARDS[1]: save({NORM: large}),
        INDEX: json.dumps({"weight_map": {EMBEDDING: SHARDS[0], NORM: SHARDS[1]}}).encode(),
        "tokenizer.json": b'{"version": "1.0"}',
        "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}',
        "consolidated.safetensors": save({NORM: large}),
        "pytorch_model.bin": b"a pickle",
        "modeling.py": b"import os",
        "original/model.safetensors": b"in another form",
    }


def without(*names: str, **more: bytes) -> dict[str, bytes]:
    """Return those files without some of them, and with others."""
    files = {name: data for name, data in whole().items() if name not in names}
    return files | {name.replace("__", "."): data for name, data in more.items()}


SAFETENSORS = [name for name in whole() if name.endswith("safetensors")]

NO_MODELS: Mapping[str, tuple[HubFolder, str]] = {
    "an adapter": (
        HubFolder(without("config.json", adapter_config__json=b"{}"), card={"base_model": "o/b"}),
        "is a LoRA adapter for o/b, not a model",
    ),
    "GGUF alone": (
        HubFolder({"config.json": b"{}", "m.Q4.gguf": b"GGUF"}, card={"base_model": "o/b"}),
        "as GGUF alone (m.Q4.gguf)",
    ),
    "pickles": (HubFolder(without(*SAFETENSORS, INDEX)), "weights as pytorch_model.bin"),
    "nothing": (HubFolder({"README.md": b"soon"}), "has no weights"),
    "weights by another name": (
        HubFolder(without(*SHARDS, INDEX)),
        "holds consolidated.safetensors, and neither model.safetensors",
    ),
    "no configuration": (HubFolder(without("config.json")), "has no config.json"),
    "a shard less": (HubFolder(without(SHARDS[1])), f"lacks {SHARDS[1]}"),
    "eight bits": (HubFolder(whole(), kinds={"F8_E4M3": 9, "BF16": 1}), "dtype F8_E4M3"),
    "quantized": (
        HubFolder(whole(quantization_config={"quant_method": "gptq"})), "are quantized",
    ),
    "quantized for MLX": (HubFolder(whole(quantization={"bits": 4})), "are quantized"),
    "a name nobody knows": (HubFolder(whole(model_type="lama")), "is a 'lama' model"),
    "no name": (HubFolder(whole(model_type=None)), "has no model_type"),
    "an encoder": (HubFolder(whole(model_type="bert")), "its tokens see those behind them"),
    "not for us": (HubFolder(whole(), status=403, code="GatedRepo"), "agreed to its terms"),
    "not for strangers": (HubFolder(whole(), status=401, code="GatedRepo"), "agreed to its terms"),
    "a refused token": (HubFolder(whole(), status=403), "doesn't show team/prose to this token"),
    "a sick hub": (HubFolder(whole(), status=503), "HTTP 503"),
}  # fmt: skip
"""What people call it -> the model, and what is said of it."""
