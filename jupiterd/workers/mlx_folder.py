"""Loading a model folder with mlx-lm, for whatever uses its model.

Owns what mlx-lm misreads in a folder. Doesn't know what the model is for.
"""

from pathlib import Path
from typing import Any

from jupiterd.adapter_folder import base_beside
from jupiterd.errors import BrokenModelError, UnknownModelError
from jupiterd.workers.tokens.marks import read_object

_CONFIG = "config.json"


def read_config(folder: Path) -> dict[str, Any]:
    """Return what config.json says; raises BrokenModelError where it can't be read."""
    return read_object(folder / _CONFIG)


def loaded_model(folder: Path) -> Any:  # noqa: ANN401 - mlx-lm's model
    """Load a model folder, with what mlx-lm misreads in it told again.

    Raises:
        UnknownModelError: mlx-lm doesn't know its architecture.
        BrokenModelError: the folder is incomplete or can't be read.
    """
    from mlx_lm.utils import load_model

    base = base_beside(folder)
    try:
        model, _ = load_model(base or folder, model_config=older_rope_fields(read_config(folder)))
    except ValueError as error:
        kind = UnknownModelError if "not supported" in str(error) else BrokenModelError
        raise kind(_reason(folder, error)) from error
    except (OSError, KeyError, TypeError, RuntimeError) as error:
        raise BrokenModelError(_reason(folder, error)) from error
    if base is not None:
        from jupiterd.workers.adapters.mlx_merge import merge

        merge(model, folder)
    return model


def _reason(folder: Path, error: Exception) -> str:
    message = (str(error).splitlines() or [type(error).__name__])[0]
    return f"no model can be read from {folder.name}: {message}"


def older_rope_fields(config: dict[str, Any]) -> dict[str, Any]:
    """Return what mlx-lm looks for elsewhere than transformers writes it.

    Without it, it takes 10,000 for the rotary base of Llama, Mistral and Qwen2, and says nothing.
    """
    rope: Any = config.get("rope_parameters") or {}
    if not isinstance(rope, dict) or "rope_theta" not in rope or "rope_theta" in config:
        return {}
    is_scaled = rope.get("rope_type", "default") != "default"
    scaling = {
        "rope_scaling": {name: value for name, value in rope.items() if name != "rope_theta"}
    }
    return {"rope_theta": rope["rope_theta"], **(scaling if is_scaled else {})}
