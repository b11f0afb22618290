"""The question that a judge is asked about two texts, and how its answer is read.

Owns the words and the reading. Doesn't know who wrote the texts, nor does the question say.
"""

import re
from collections.abc import Iterable
from typing import Final

from jupiterd.cycle.templates.prompt import Prompt

MAX_REPLY_CHARS: Final = 500
"""So much of the end of an answer is kept: models that think aloud say at last what they mean."""

_TASK: Final = (
    "Below is the beginning of a text, and two ways in which it might go on. Either may break off "
    "at its end, which is no fault. Which one goes on from the beginning better: in what it says, "
    "in its language, and in its form? Answer with its number alone, 1 or 2."
)
_AFTER_THOUGHT: Final = re.compile(r"</think(?:ing)?>")
_NUMBER: Final = re.compile(r"(?<![\w.,])[12](?![\w]|[.,]\d)")
_MARKS: Final = ("beginning", "1", "2")


def question(beginning: str, first: str, second: str, specials: Iterable[str] = ()) -> Prompt:
    """Return the question in both forms that a model may take it in.

    specials: what reads as a mark of the judge's own in a text
    """
    known = tuple(specials)
    texts = zip(_MARKS, (beginning, first, second), strict=True)
    shown = "\n".join(f"<{mark}>\n{_defused(text, known)}\n</{mark}>" for mark, text in texts)
    message = f"{_TASK}\n\n{shown}\n"
    return Prompt(message=message, opening=f"{message}\nThe number of the better one is")


def stored_reply(text: str) -> str:
    """Return what is kept of an answer."""
    return text[-MAX_REPLY_CHARS:]


def chosen(reply: str) -> int | None:
    """Return the number that an answer names, 1 or 2; None where it names both or neither."""
    said = _AFTER_THOUGHT.split(reply)[-1]
    named = set(_NUMBER.findall(said))
    return int(named.pop()) if len(named) == 1 else None


def _defused(text: str, specials: Iterable[str]) -> str:
    """Return a text in which nothing reads as the end of a part, or as a mark of the judge's."""
    marks = [f"<{slash}{mark}>" for mark in _MARKS for slash in ("", "/")]
    for mark in (*marks, *specials):
        if len(mark) > 1 and mark in text:
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text
