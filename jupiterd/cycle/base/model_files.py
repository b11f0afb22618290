"""Which files a Hugging Face model folder needs to write text, and which of them are missing.

Owns that list. Doesn't know disks: it is given names, and the text of the index.
"""

import json
from collections.abc import Collection
from typing import Any, Final

FAST_TOKENIZER: Final = "tokenizer.json"
"""A whole tokenizer in one file, which is the form that is read here."""

OLDER_TOKENIZERS: Final = (
    ("vocab.json", "merges.txt"),
    ("tokenizer.model",),
    ("spiece.model",),
    ("sentencepiece.bpe.model",),
)
"""Other forms, each with the files that it consists of: a `tokenizer.json` is made from them."""

TOKENIZER_FILES: Final = (
    FAST_TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
    *(name for names in OLDER_TOKENIZERS for name in names),
)
"""What belongs to a tokenizer: how text is cut, which marks there are, how a model is talked to."""

WITH_TOKENIZER: Final = ("config.json", *TOKENIZER_FILES)
"""A model's configuration may name the tokenizer's class, and the end token."""

GENERATOR_FILES: Final = ("*.safetensors", "model.safetensors.index.json", *WITH_TOKENIZER)
"""What is taken of a folder: no pickle above all, and no program."""

INDEX: Final = "model.safetensors.index.json"
"""Says which of several files holds which weights."""

WHOLE: Final = "model.safetensors"
"""Holds all the weights where there is no index."""


def missing_files(names: Collection[str], index: str) -> list[str]:
    """Return what a folder lacks, in a sensible order; nothing: it looks whole.

    Args:
        names: of the files in it.
        index: what model.safetensors.index.json says; empty where there is none.
    """
    missing = [] if "config.json" in names else ["config.json"]
    missing += [] if has_tokenizer(names) else [FAST_TOKENIZER]
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


def has_tokenizer(names: Collection[str]) -> bool:
    """Say whether there is a tokenizer among these files, in any form."""
    return FAST_TOKENIZER in names or is_older_tokenizer(names)


def may_have_tokenizer(names: Collection[str]) -> bool:
    """Say whether any of these files may be a tokenizer, also in forms that engines alone read."""
    return any(name.startswith(_BEGIN_TOKENIZERS) or name.endswith(_END_TOKENIZERS)
               for name in names)  # fmt: skip


_BEGIN_TOKENIZERS: Final = ("tokenizer.", "vocab", "spiece.", "sentencepiece.", "tekken.")
_END_TOKENIZERS: Final = (".tiktoken", ".spm")


def is_older_tokenizer(names: Collection[str]) -> bool:
    """Say whether there is a tokenizer in another form than `tokenizer.json`, and in that none."""
    is_whole = any(set(needed) <= set(names) for needed in OLDER_TOKENIZERS)
    return is_whole and FAST_TOKENIZER not in names


def shards_in(index: str) -> set[str]:
    """Return which files an index of weights names."""
    try:
        said: Any = json.loads(index)["weight_map"]
        return {str(name) for name in said.values()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"a model.safetensors.index.json that can be read"}
