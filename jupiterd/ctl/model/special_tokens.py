"""The token that begins a text for an exported model, and whether the model has a chat template.

Owns reading both from the model's folder, for the card and for programs that score the model.
Doesn't read weights.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.model_files import FAST_TOKENIZER
from jupiterd.cycle.data.special_tokens import END_OF_TEXT, SAYING_FILES, end_token, token_text
from jupiterd.cycle.data.tokenizer_identity import TEMPLATE_FILE
from jupiterd.gguf_file.vocabulary import adds_bos


@dataclass(frozen=True)
class SpecialTokens:
    """The first token of a text, and whether there is a chat template."""

    first: str
    """The token that is put before a text that is scored."""
    first_id: int | None
    """Its id; None: the tokenizer can't be read or doesn't have it."""
    is_chat: bool
    """Whether there is a chat template."""


def exported_marks(folder: Path) -> SpecialTokens:
    """Return the values for a model folder; files that can't be read get Jupiter's defaults."""
    said = {name: _read(folder / name) for name in (FAST_TOKENIZER, *SAYING_FILES)}
    tokenizer, config = said[FAST_TOKENIZER], said["tokenizer_config.json"]
    ids = _ids(tokenizer)
    end = end_token(said)
    if isinstance(end, int):
        end = next((text for text, at in ids.items() if at == end), "")
    begins = adds_bos(tokenizer, config) and token_text(config.get("bos_token"))
    first = begins or end or END_OF_TEXT
    has_template = (folder / TEMPLATE_FILE).is_file() or bool(config.get("chat_template"))
    return SpecialTokens(first, ids.get(first), has_template)


def _ids(tokenizer: dict[str, Any]) -> dict[str, int]:
    known: dict[str, int] = {}
    vocab: Any = (tokenizer.get("model") or {}).get("vocab")
    if isinstance(vocab, dict):
        known |= vocab
    return known | {each["content"]: each["id"] for each in tokenizer.get("added_tokens") or ()}


def _read(path: Path) -> dict[str, Any]:
    try:
        said: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
