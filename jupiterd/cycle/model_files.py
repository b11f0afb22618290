"""Which files a Hugging Face model folder needs to write text, and which of them are missing.

Owns that list. Doesn't know disks: it is given names, and the text of the index.
"""

import json
from collections.abc import Collection
from typing import Any, Final

GENERATOR_FILES: Final = (
    "config.json",
    "*.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "chat_template.jinja",
)
"""What is taken of a folder: no pickle above all, and no program."""

WHOLE: Final = "model.safetensors"
"""Holds all the weights where there is no index."""

_NEEDED: Final = ("config.json", "tokenizer.json")


def missing_files(names: Collection[str], index: str) -> list[str]:
    """Return what a folder lacks, in a sensible order; nothing: it looks whole.

    Args:
        names: of the files in it.
        index: what model.safetensors.index.json says; empty where there is none.
    """
    missing = [name for name in _NEEDED if name not in names]
    if index:
        return missing + sorted(shards_in(index) - set(names))
    has_weights = any(name.endswith(".safetensors") for name in names)
    return missing + ([] if has_weights else [WHOLE])


def weight_files(names: Collection[str], index: str) -> list[str]:
    """Return which files hold the weights: some makers keep them once more, in another cut.

    None where no file has the name that every loader looks for.

    Args:
        names: of the files in a folder.
        index: what model.safetensors.index.json says; empty where there is none.
    """
    if index:
        return sorted(shards_in(index))
    return [WHOLE] if WHOLE in names else []


def shards_in(index: str) -> set[str]:
    """Return which files an index of weights names."""
    try:
        said: Any = json.loads(index)["weight_map"]
        return {str(name) for name in said.values()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"a model.safetensors.index.json that can be read"}
