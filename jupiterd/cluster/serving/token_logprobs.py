"""How likely each token was, in the form that clients of completions expect.

Owns turning the form of conversations, which engines give for both, into that of completions. Pure.
Doesn't know who asked, nor what is done with it.

    {"content": [{"token": ..., "logprob": ..., "top_logprobs": [{"token": ..., "logprob": ...}]}]}
    {"tokens": [...], "token_logprobs": [...], "top_logprobs": [{...}], "text_offset": [...]}
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast


def of_completion(said: Mapping[str, Any], offset: int) -> dict[str, Any] | None:
    """Return what an engine says of a completion's tokens; None: it isn't in conversations' form.

    Args:
        said: the `logprobs` of a choice.
        offset: where its text begins in the whole answer, in characters.
    """
    content = said.get("content")
    if not isinstance(content, list):
        return None
    rows = [_row(each) for each in cast("list[object]", content)]
    tokens = [_token(row) for row in rows]
    return {
        "tokens": tokens,
        "token_logprobs": [row.get("logprob") for row in rows],
        "top_logprobs": [_top(row) for row in rows],
        "text_offset": _offsets(tokens, offset),
    }


def _offsets(tokens: Sequence[str], offset: int) -> list[int]:
    found: list[int] = []
    for token in tokens:
        found.append(offset)
        offset += len(token)
    return found


def _top(row: Mapping[str, Any]) -> dict[str, Any]:
    found = row.get("top_logprobs")
    rows = cast("list[object]", found) if isinstance(found, list) else []
    return {_token(each): each.get("logprob") for each in map(_row, rows)}


def _token(row: Mapping[str, Any]) -> str:
    """Return a token's text; its id where the engine gives no more."""
    text = row.get("token")
    return text if isinstance(text, str) else f"token_id:{row.get('id')}"


def _row(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
