"""Whether a text goes round: at its end it says over and over what it has said.

Owns the measure, the only one that people are shown: what a candidate writes when it is tried out,
what models answer beside a verdict. Doesn't know what follows from it, or the stricter bounds of
text that is trained on (`repetition`, `templates.answers`).

It looks at the last half alone, for a model that falls into a loop doesn't leave it. Numbers aren't
words: a phrase that counts up is the same phrase. The bounds are set so that of 30,000 pieces of
documentation, manuals, tables, lists and code, each as long as an answer, hardly 1 % loop; what
does is a list of the same call or cell again and again.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

TURNS: Final = 4
"""A piece that ends a text, whatever it is made of, loops when it comes so often."""

RUN: Final = 3
"""Words that are looked for again together; letters, where no spaces stand between words."""

RUN_TURNS: Final = 3
"""A run that comes less often is none of a loop: people say things twice."""

LEAST_SHARE: Final = 0.7
"""Of the words of the last half, those that must stand in such runs."""

LEAST_WORDS: Final = 6
"""Of a text that is judged by its words."""

# Thai, Lao, Burmese, Khmer, Chinese and Japanese.
_UNSPACED: Final = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
_WORD: Final = re.compile(rf"{_UNSPACED}|(?:(?!{_UNSPACED})[^\W\d_])+")


def is_looping(text: str) -> bool:
    """Say whether the last half of a text is hardly anything but what it has said before."""
    return (
        _is_tiled(text)
        or _is_tiled("".join(text.split()))
        or _says_again(_WORD.findall(text.lower()))
    )


def is_blank_at_end(text: str) -> bool:
    """Say whether nobody sees anything of the last half: line ends and spaces."""
    return bool(text) and not text[len(text) // 2 :].strip()


def _is_tiled(text: str) -> bool:
    tail = text[len(text) // 2 :]
    return any(tail[period:] == tail[:-period] for period in range(1, len(tail) // TURNS + 1))


def _says_again(words: Sequence[str]) -> bool:
    if len(words) < LEAST_WORDS:
        return False
    runs = list(zip(*(words[start:] for start in range(RUN)), strict=False))
    times = Counter(runs)
    again = [False] * len(words)
    for start, run in enumerate(runs):
        if times[run] >= RUN_TURNS:
            again[start : start + RUN] = [True] * RUN
    tail = again[len(words) // 2 :]
    return sum(tail) >= LEAST_SHARE * len(tail)
