"""The marks around a document: what a tokenizer puts before it, and what ends it.

Owns reading them from a folder. Models that others made were taught their own: `<s>` or
`<|begin_of_text|>` before a text, `</s>` or `<|im_end|>` behind it. Doesn't know what is marked.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from jupiterd.cycle.data.special_tokens import END_OF_TEXT, SAYING_FILES, end_token, token_text
from jupiterd.errors import BrokenModelError, InvalidSettingError

CONFIG_FILE = "tokenizer_config.json"


@dataclass(frozen=True)
class DocumentMarks:
    """Ids of tokens."""

    before: tuple[int, ...]
    """What stands before each document; nothing with tokenizers that are trained here."""
    end: int
    """What stands behind it."""

    @property
    def first(self) -> int:
        """Return what a model is shown before the first token of a text that it is scored on."""
        return self.before[-1] if self.before else self.end

    def around(self, ids: list[int]) -> list[int]:
        """Return the tokens of a whole document."""
        return [*self.before, *ids, self.end]


def document_marks(folder: Path, tokenizer: Tokenizer) -> DocumentMarks:
    """Return the marks of a folder's tokenizer.

    Raises:
        InvalidSettingError: it has no token that ends a text.
        BrokenModelError: a file can't be read.
    """
    said = {name: read_object(folder / name) for name in SAYING_FILES if (folder / name).is_file()}
    end = _id_of(tokenizer, end_token(said))
    if end is None:
        raise InvalidSettingError(
            f"the tokenizer has no {END_OF_TEXT}, and names no end token of its own",
            "say eos_token in its tokenizer_config.json, or take another tokenizer",
        )
    return DocumentMarks(_before(tokenizer, end, said.get(CONFIG_FILE, {})), end)


def read_object(path: Path) -> dict[str, Any]:
    """Return what a file of JSON says; raises BrokenModelError where it says nothing."""
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenModelError(f"{path.parent.name} has no {path.name} to be read") from error
    if not isinstance(found, dict):
        raise BrokenModelError(f"{path.name} of {path.parent.name} says nothing")
    return found


def _id_of(tokenizer: Tokenizer, end: str | int | None) -> int | None:
    """Return an end token's id; that of the usual mark where nobody names one that is there."""
    if isinstance(end, int) and tokenizer.id_to_token(end) is not None:
        return end
    named: int | None = tokenizer.token_to_id(end) if isinstance(end, str) else None
    return tokenizer.token_to_id(END_OF_TEXT) if named is None else named


def _before(tokenizer: Tokenizer, end: int, config: dict[str, Any]) -> tuple[int, ...]:
    """Return what the tokenizer itself puts before a text; its configuration may say otherwise."""
    wanted = config.get("add_bos_token")
    if wanted is False:
        return ()
    added = tuple(each for each in tokenizer.encode("").ids if each != end)
    begin = tokenizer.token_to_id(token_text(config.get("bos_token")))
    return (begin,) if wanted and not added and begin is not None else added
