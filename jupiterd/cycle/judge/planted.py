"""Pairs of which it is known who is better, made of real text without any model.

Owns where a text is cut, and the three ways of spoiling what follows. Doesn't know judges.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from jupiterd.cycle.judge.pair import Pair, PairKind
from jupiterd.cycle.text_rules.code_parsing import PARSED_LANGUAGES, parseable_beginning

MIN_BEGINNING_CHARS: Final = 48
MAX_BEGINNING_CHARS: Final = 320
MIN_CHARS: Final = 40
"""Of a text that can be judged."""
MAX_CHARS: Final = 240
"""Shown of what follows: about what a student writes in the tokens that it is given."""

KINDS: Final = (PairKind.FOREIGN, PairKind.SHUFFLED, PairKind.CORRUPTED)

_CORRUPTED_EVERY: Final = 3
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True)
class Begun:
    """A real document, cut in two."""

    document: str
    cluster: str
    beginning: str
    follows: str
    """What stands there after it, as far as it is shown."""


def begun(document: str, cluster: str, text: str, language: str) -> Begun | None:
    """Return a document cut where a model can go on; None where too little follows."""
    beginning = _beginning(text, language)
    follows = text[len(beginning) : len(beginning) + MAX_CHARS]
    if not beginning or len(follows.strip()) < MIN_CHARS:
        return None
    return Begun(document, cluster, beginning, follows)


def spread(found: Sequence[Begun], wanted: int) -> list[Begun]:
    """Return so many, of as many clusters as there are; their order decides which of a cluster."""
    of_cluster: dict[str, int] = {}
    ranked: list[tuple[int, int]] = []
    for place, each in enumerate(found):
        of_cluster[each.cluster] = of_cluster.get(each.cluster, 0) + 1
        ranked.append((of_cluster[each.cluster], place))
    return [found[place] for _, place in sorted(ranked)[:wanted]]


def planted_pairs(found: Sequence[Begun], wanted: int, seed: str) -> list[Pair]:
    """Return so many pairs, of the three kinds in turn; fewer where there are few documents.

    A document is spoilt in each way once at most.
    """
    pairs: list[Pair] = []
    for turn in range(len(KINDS)):
        for place, each in enumerate(found):
            if len(pairs) == wanted:
                return pairs
            kind = KINDS[(place + turn) % len(KINDS)]
            if spoilt := _spoilt(found, place, kind, f"{seed}\0{each.document}"):
                real, spoilt = same_length(each.follows, spoilt)
                pairs.append(
                    Pair(str(kind), each.document, each.cluster, each.beginning, real, spoilt)
                )
    return pairs


def same_length(first: str, second: str) -> tuple[str, str]:
    """Return both as long as the shorter one: judges like what is longer."""
    shown = min(len(first), len(second), MAX_CHARS)
    return first[:shown], second[:shown]


def _beginning(text: str, language: str) -> str:
    if language in PARSED_LANGUAGES:
        return parseable_beginning(text, MIN_BEGINNING_CHARS, MAX_BEGINNING_CHARS)
    most = min(MAX_BEGINNING_CHARS, len(text) // 2)
    # Between two words, where there are such: half a word would tell who saw the whole one.
    cut = max(text.rfind(" ", 0, most), text.rfind("\n", 0, most))
    end = cut if cut >= MIN_BEGINNING_CHARS else most
    return text[:end] if end >= MIN_BEGINNING_CHARS else ""


def _spoilt(found: Sequence[Begun], place: int, kind: PairKind, key: str) -> str:
    """Return a text that is worse than what follows; empty where none can be made."""
    follows = found[place].follows
    foreign = _foreign(found, place, key)
    if kind is PairKind.FOREIGN:
        spoilt = foreign
    elif kind is PairKind.SHUFFLED:
        spoilt = _with_words(follows, _shuffled(_WORD.findall(follows), key))
    else:
        spoilt = _with_others(follows, _shuffled(_WORD.findall(foreign), key))
    is_worse = spoilt.split() != follows.split() and len(spoilt.strip()) >= MIN_CHARS
    return spoilt if is_worse else ""


def _foreign(found: Sequence[Begun], place: int, key: str) -> str:
    """Return what follows in a document of another cluster; empty where there is none."""
    own = found[place].cluster
    others = [each for each in found if each.cluster != own]
    if not others:
        return ""
    return others[int.from_bytes(_digest(key), "big") % len(others)].follows


def _with_others(text: str, others: Sequence[str]) -> str:
    words = _WORD.findall(text)
    if not others:
        return ""
    for number in range(0, len(words), _CORRUPTED_EVERY):
        words[number] = others[number % len(others)]
    return _with_words(text, words)


def _with_words(text: str, words: Sequence[str]) -> str:
    """Return the text with other words at the places of its own: its layout stays."""
    left = iter(words)
    return _WORD.sub(lambda _: next(left), text)


def _shuffled(words: Sequence[str], key: str) -> list[str]:
    """Return the words in an order that looks random."""
    order = sorted(range(len(words)), key=lambda place: _digest(f"{key}\0{place}"))
    return [words[place] for place in order]


def _digest(text: str) -> bytes:
    return blake3(text.encode()).digest(16)
