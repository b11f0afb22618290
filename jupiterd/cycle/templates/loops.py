"""Where an answer begins to say again what it said: small models that have no more to say go round.

Owns finding that place, and the answer in front of it. Doesn't know what the answer is worth.
"""

import re
from typing import Final

LEAST_WORDS: Final = 5
"""Shorter sentences may come twice: "It is fast."."""

_SENTENCE: Final = re.compile(r"[^\n.!?\u3002\uff01\uff1f]+(?:[.!?\u3002\uff01\uff1f]+|(?=\n)|\Z)")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
"""Lines of a program may well come again."""
_WORDS: Final = re.compile(r"[^\W_]+")
_LABEL: Final = re.compile(
    r"\n*^[ \t#*_>-]*(?:questions?|answers?|preguntas?|respuestas?|q|a)?[ \t#*_:\d.-]*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""What is left of a part that was only begun."""
_LABELLED: Final = re.compile(
    r"\A[\s#*_>-]*(?:questions?|answers?|exercises?|solutions?|preguntas?|respuestas?|ejercicios?|"
    r"soluci[o\u00f3]n(?:es)?|q|a)[\s\d*_]*:",
    re.IGNORECASE,
)
"""What stands in front of a sentence without being of it: "Answer: It is ...", and "It is ..."."""
_HEADING: Final = re.compile(r"(?:\n+#{1,6} [^\n]*)+\Z")


def loop_start(text: str) -> int | None:
    """Return where the first sentence begins that stands in the text before; None: there is none.

    A sentence that isn't ended yet is none.
    """
    seen: set[str] = set()
    for found in _SENTENCE.finditer(_CODE.sub(_blank, text)):
        words = [word.lower() for word in _WORDS.findall(_LABELLED.sub("", found[0]))]
        if len(words) < LEAST_WORDS:
            continue
        said = " ".join(words)
        if said in seen:
            return found.start()
        seen.add(said)
    return None


def _blank(found: re.Match[str]) -> str:
    return "\n" * len(found[0])


def before_loop(text: str) -> str:
    """Return the text up to where it begins to say the same again, without a part only begun."""
    start = loop_start(text)
    if start is None:
        return text
    return _HEADING.sub("", _LABEL.sub("", text[:start].rstrip()).rstrip()).rstrip()
