"""What to write where the rows of a table are in a form that isn't read, such as Alpaca's.

Pure. Owns the forms that are recognised and the words. Doesn't know files.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cycle.data.reason_words import reason_words

SAY_FIELD: Final = (
    "say which field holds the text: --field NAME with domain new, field: NAME in the domain file"
)

_DIALOGUES: Final = ("conversations", "conversation", "dialogue", "dialog")
_PAIRS: Final = (
    ("instruction", "output"),
    ("instruction", "response"),
    ("question", "answer"),
    ("query", "response"),
    ("query", "answer"),
    ("prompt", "response"),
    ("prompt", "answer"),
    ("input", "output"),
    ("user", "assistant"),
)
"""What is asked, and what is answered."""


def field_hint(why_not: str) -> str:
    """Return what to do where a source has no text because of its fields; or nothing."""
    return SAY_FIELD if reason_words("no_field") in why_not else ""


def row_advice(fields: Mapping[str, Any]) -> str:
    """Return what was found in a row and what to write instead; empty: no form that is known."""
    for name in _DIALOGUES:
        if isinstance(fields.get(name), list):
            return f"it has {name}: write messages, a list of role (user, assistant) and content"
    for question, answered in _PAIRS:
        if question in fields and answered in fields:
            beside = fields.get("input") if question == "instruction" else None
            both = f"{question} and input" if beside else question
            advice = f"write {both} as prompt, {answered} as completion"
            return f"it has {question} and {answered}: {advice}"
    return ""
