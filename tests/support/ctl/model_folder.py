"""A folder that looks like a model to whoever reads no weights."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

CONFIG = {"model_type": "qwen3", "tie_word_embeddings": True}


def write_folder(folder: Path, *names: str) -> Path:
    """Write these files; of config.json, tokenizer.json and weights what one expects in them."""
    folder.mkdir(exist_ok=True)
    for name in names:
        if name == "config.json":
            (folder / name).write_text(json.dumps(CONFIG))
        elif name.endswith(".safetensors"):
            save_file({"model.norm.weight": np.ones(4, dtype=np.float32)}, folder / name)
        else:
            (folder / name).write_bytes(b"{}")
    return folder
