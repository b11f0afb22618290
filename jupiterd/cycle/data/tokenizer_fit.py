"""Whether a model's tokenizer suits its weights: no token beyond them, and one that ends a text.

Owns that comparison. Pure: it is given the files' text. Doesn't know how text is cut.
"""

import json
from collections.abc import Mapping

from jupiterd.cycle.base.model_files import FAST_TOKENIZER
from jupiterd.cycle.data.special_tokens import END_OF_TEXT, SAYING_FILES, end_token
from jupiterd.cycle.data.tokenizer_identity import token_ids_of


def tokenizer_misfit(files: Mapping[str, str], entries: int | None) -> str:
    """Return what makes a tokenizer useless for its model; empty: nothing does.

    Args:
        files: name -> text, of `tokenizer.json` and of SAYING_FILES those that are there.
        entries: of the embedding, as config.json says; None: it doesn't.

    Raises:
        ValueError: a file isn't what it should be.
    """
    ids = token_ids_of(json.loads(files[FAST_TOKENIZER]))
    if not ids:
        return ""  # of a kind that isn't known here
    last = max(ids.values())
    if entries is not None and last >= entries:
        return (
            f"its tokenizer has a token with the id {last:,}, and its weights know "
            f"{entries:,} tokens"
        )
    said = {name: json.loads(files[name]) for name in SAYING_FILES if name in files}
    end = end_token(said)
    known = (end in ids.values()) if isinstance(end, int) else (end in ids)
    if known or END_OF_TEXT in ids:
        return ""
    named = "names no token that ends a text" if end is None else f"has no {end}, which ends a text"
    return f"its tokenizer {named}"
