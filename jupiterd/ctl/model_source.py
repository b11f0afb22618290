"""What the daemon is told of a model: the name of a preset, or what a Hugging Face folder says.

Owns that choice and reading config.json. Doesn't know which presets there are.
"""

from pathlib import Path
from typing import Any

from jupiterd.errors import NotFoundError

CONFIG = "config.json"
HINT = "give a size such as 1m or gpt2-medium, or a Hugging Face model's folder"


def model_arguments(text: str) -> dict[str, Any]:
    """Return what the daemon is told; where a folder holds weights, training starts from them.

    Raises:
        NotFoundError: the folder isn't here, or has no config.json that can be read.
    """
    folder = Path(text).expanduser()
    if "/" not in text and not (folder / CONFIG).is_file():
        return {"model": text}
    try:
        config = (folder / CONFIG).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise NotFoundError(f"{folder / CONFIG} can't be read", HINT) from error
    where = folder.resolve()
    holds_weights = any(where.glob("*.safetensors"))
    return {
        "model": where.name,
        "config": config,
        **({"weights_folder": str(where)} if holds_weights else {}),
    }


def tokenizer_options(model: dict[str, Any]) -> dict[str, Any]:
    """Return how text is cut for weights that exist: by the tokenizer that lies beside them."""
    folder = model.get("weights_folder")
    if folder is None or not (Path(folder) / "tokenizer.json").is_file():
        return {}
    return {"tokenizer_path": folder}
