"""The prompt in the example of a model's card, in the model's language and about its domain.

Pure. Owns the text. Doesn't know how a prompt is passed to a model.
"""

from collections.abc import Mapping
from typing import Any

MOST_WORDS = 5

_QUESTIONS = {"es": "\u00bfDe qu\u00e9 trata?", "en": "What is it about?"}
_BEGINNINGS = {"code:python": "def count(", "es": "La ", "en": "The "}


def example_prompt(model: Mapping[str, Any], *, is_chat: bool) -> str:
    """Return a question, or the beginning of a text such as the model was trained on.

    model: the daemon's document of it
    """
    language = str(model.get("language") or "")
    if is_chat:
        return _QUESTIONS.get(language, _QUESTIONS["en"])
    return _BEGINNINGS.get(language) or _beginning_of_its_own(model) or _BEGINNINGS["en"]


def _beginning_of_its_own(model: Mapping[str, Any]) -> str:
    """Return the first words of a text that it went on with; nothing where none was kept."""
    for each in model.get("completions") or ():
        if words := str(each["prompt"]).split():
            return " ".join(words[:MOST_WORDS])
    return ""
