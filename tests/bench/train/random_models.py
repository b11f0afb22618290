"""Models of public sizes whose weights are random: a folder as the hub has them.

Owns the configurations of SmolLM2. Memory and speed don't depend on what weights are.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from jupiterd.cycle.training.tensor_shapes import expected_tensors
from jupiterd.workers.tensor_file import WEIGHTS_FILE

_SIZES = {
    "smollm2-135m": (576, 1536, 30, 9, 3),
    "smollm2-360m": (960, 2560, 32, 15, 5),
}
"""Width, that of the feed-forward part, layers, heads, and those of keys."""

NAMES = tuple(_SIZES)


def config_of(name: str) -> dict[str, Any]:
    """Return what config.json of a model says."""
    hidden, ff, layers, heads, kv_heads = _SIZES[name]
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": hidden,
        "intermediate_size": ff,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": 49_152,
        "max_position_embeddings": 8_192,
        "rope_theta": 100_000.0,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
    }


def write_folder(name: str, folder: Path) -> Path:
    """Write config.json, and weights in fp32 that are drawn at random; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(name)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    chance, shapes = np.random.default_rng(0), expected_tensors(config) or {}
    weights = {
        tensor: chance.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        if len(shape) > 1
        else np.ones(shape, dtype=np.float32)
        for tensor, shape in shapes.items()
    }
    save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    return folder
