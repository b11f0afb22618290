"""Which token ends a document, by what the files of a model say of themselves.

Owns the order in which they are believed. Pure: it is given what the files say. Doesn't know
tokenizers: a token is named by its text, or by its id.
"""

from collections.abc import Mapping
from typing import Any, Final

END_OF_TEXT: Final = "<|endoftext|>"
"""The mark of tokenizers that are trained here, and of models that say nothing of theirs."""

BY_TEXT: Final = ("tokenizer_config.json", "special_tokens_map.json")
BY_ID: Final = ("generation_config.json", "config.json")
ID_FIELDS: Final = ("bos_token_id", "eos_token_id", "pad_token_id")
SAYING_FILES: Final = (*BY_TEXT, *BY_ID)
"""Files that may name it, the first one that does counts."""


def end_token(said: Mapping[str, Mapping[str, Any]]) -> str | int | None:
    """Return the model's own end token, by its text or id; None: nobody names one.

    said: name of a file -> what it says, for each of SAYING_FILES that is there
    """
    for name in BY_TEXT:
        if text := token_text(said.get(name, {}).get("eos_token")):
            return text
    for name in BY_ID:
        if ids := token_ids(said.get(name, {}).get("eos_token_id")):
            return ids[0]
    return None


def special_token_ids(config: Mapping[str, Any], end: int, vocab_size: int) -> dict[str, Any]:
    """Return what a configuration says of special tokens: its own ids where they can be meant.

    Args:
        config: config.json as it came.
        end: the token that ends a document, where the configuration doesn't say.
        vocab_size: entries of the tokenizer; an id beyond them is of another one.
    """
    if not token_ids(config.get("eos_token_id")):
        return dict.fromkeys(ID_FIELDS, end)
    said = {name: config[name] for name in ID_FIELDS if name in config}
    is_other = any(each >= vocab_size for value in said.values() for each in token_ids(value))
    return dict.fromkeys(ID_FIELDS, end) if is_other else said


def without_token_ids(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose model gets a tokenizer of its own, and so other ids."""
    return {name: value for name, value in config.items() if name not in ID_FIELDS}


def token_text(value: object) -> str:
    """Return the text of a token as a configuration has it: plain, or with its traits; or empty."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def token_ids(value: object) -> list[int]:
    """Return the ids that a configuration names: one, several, or none."""
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, int) and not isinstance(each, bool)]
