"""Fields of a request that nobody knows, and whose names are close to one that is heeded.

Owns what close means. A misspelt `max_tokens` would be left out in silence, with an answer that
nobody asked for. What else is unknown stays: clients send much of their own. Doesn't know values.
"""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from jupiterd.cluster.serving.field_checks import OF_CHAT, OF_COMPLETIONS
from jupiterd.cluster.serving.request_error import refused
from jupiterd.cluster.serving.unsupported_fields import UNSUPPORTED

OF_ALL: Final = frozenset({"model", "stream_options"})
"""Fields that are read before the others."""

OF_OTHERS: Final = frozenset({"mode", "models", "repetition_penalty_range", "speed"})
"""Fields of other servers that are no mistakes, however close."""

_IDS: Final = ("_id", "_ids")
"""End names that are a client's own, such as prompt_id."""

_CLOSE: Final = 0.85
"""Of 1, as `difflib` compares: so close are max_token and max_new_tokens to max_tokens, and no
field of OpenAI's API, vLLM, llama.cpp or Open WebUI is to another."""

_MOST_CHARACTERS: Final = 40

_MOST_STRANGE: Final = 100
"""No client sends so many; comparing the names of thousands would keep others waiting."""


def check_misspelt_fields(said: Mapping[str, Any], *, is_chat: bool) -> None:
    """Raise RequestError for an unknown field whose name is close to one that is heeded."""
    heeded = {*(OF_CHAT if is_chat else OF_COMPLETIONS), "messages" if is_chat else "prompt"}
    known = {*OF_CHAT, *OF_COMPLETIONS, *OF_ALL, *OF_OTHERS, *UNSUPPORTED, "messages", "prompt"}
    strange = said.keys() - known
    if len(strange) > _MOST_STRANGE:
        return
    for name in strange:
        if near := _nearest(name, heeded | OF_ALL):
            raise refused(
                f"{name}: there is no such field; did you mean {near}?", name, "unknown_parameter"
            )


def _nearest(name: str, heeded: Iterable[str]) -> str:
    """Return the heeded field that a name is close to; empty: to none."""
    if len(name) > _MOST_CHARACTERS or not name.isprintable() or name.endswith(_IDS):
        return ""
    found = max((_closeness(name, each), each) for each in heeded)
    return found[1] if found[0] >= _CLOSE else ""


def _closeness(name: str, known: str) -> float:
    """Return how close two names are, up to 1; case, bars and swapped letters count little."""
    ours, theirs = _letters(name), _letters(known)
    if sorted(ours) == sorted(theirs):
        return 1.0
    return SequenceMatcher(None, ours, theirs, autojunk=False).ratio()


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
