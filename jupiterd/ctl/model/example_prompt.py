"""The example prompt of a model card, in the model's language and about its domain.

Pure. Owns the text. Doesn't know how a prompt is passed to a model.
"""

from collections.abc import Mapping
from typing import Any

MOST_WORDS = 5

_QUESTIONS = {"es": "\u00bfDe qu\u00e9 trata?", "en": "What is it about?"}
_BEGINNINGS = {"code:python": "def count(", "es": "La ", "en": "The "}


def example_prompt(model: Mapping[str, Any], *, is_chat: bool) -> str:
    """Return a question for a chat model; for others, the beginning of a text to continue.

    model: the daemon's document of the model
    """
    language = str(model.get("language") or "")
    if is_chat:
        return _QUESTIONS.get(language, _QUESTIONS["en"])
    return _BEGINNINGS.get(language) or _beginning_of_its_own(model) or _BEGINNINGS["en"]


def _beginning_of_its_own(model: Mapping[str, Any]) -> str:
    """Return the first words of a recorded prompt of the model; empty: none was recorded."""
    for each in model.get("completions") or ():
        if words := str(each["prompt"]).split():
            return " ".join(words[:MOST_WORDS])
    return ""
