"""Gaps in real held-out text, made without any model: what stood there and three others like it.

Owns which words are hidden and what is offered beside them. Doesn't know models, or who fills gaps.

A gap hides a name, a number or a heading. What is offered beside it are three others of the same
kind and length out of the same held-out text, so that neither length nor subject gives it away.
"""

import keyword
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from blake3 import blake3

WANTED_ITEMS = 400
"""So many gaps over all documents, where they have them."""

MAX_OF_DOCUMENT = 8
DISTRACTORS = 3

BEFORE_CHARS = 128
AFTER_CHARS = 32
"""What is read around a gap: enough to tell a name, and a fifth of the cost of the documents."""


class GapKind(StrEnum):
    """What a gap hides."""

    IDENTIFIER = "identifier"
    NUMBER = "number"
    HEADING = "heading"


@dataclass(frozen=True)
class HeldOutText:
    """A document that gaps are made in."""

    id: str
    cluster: str
    text: str


@dataclass(frozen=True)
class ClozeItem:
    """One gap."""

    id: str
    """The document's id and the place in it."""
    document: str
    cluster: str
    kind: GapKind
    before: str
    options: tuple[str, ...]
    """What may stand there; the first is what did."""
    after: str

    def filled(self) -> list[str]:
        """Return the text with each option in the gap."""
        return [self.before + option + self.after for option in self.options]


@dataclass(frozen=True)
class _Span:
    kind: GapKind
    start: int
    stop: int


_PROSE = {
    # A word in the middle of a sentence that begins with a capital, or has a line or digit inside.
    GapKind.IDENTIFIER: re.compile(r"(?<=\w )[A-Z]\w{3,31}\b|\b\w+_\w{2,31}\b"),
    GapKind.NUMBER: re.compile(r"(?<![\w.,])\d{2,}(?:[.,]\d+)?(?![\w])"),
    GapKind.HEADING: re.compile(r"(?m)^#{1,6} (?P<word>\S.{3,60})$"),
}
_CODE = {
    GapKind.IDENTIFIER: re.compile(r"\b[A-Za-z_]\w{3,31}\b"),
    GapKind.NUMBER: re.compile(r"(?<![\w.])\d{2,}(?:\.\d+)?(?![\w.])"),
}
_KEYWORDS = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist)


def make_items(
    documents: Sequence[HeldOutText], language: str, wanted: int = WANTED_ITEMS
) -> list[ClozeItem]:
    """Return the gaps of these documents, the same whoever makes them.

    Args:
        documents: all held-out text that is scored, each document once.
        language: of the domain; `code:` has rules of its own.
        wanted: how many in all, where the text has so many.
    """
    patterns = _CODE if language.startswith("code:") else _PROSE
    spans = {document.id: list(_spans(document.text, patterns)) for document in documents}
    pool = _pool(documents, spans)
    of_each = min(MAX_OF_DOCUMENT, -(-wanted // max(1, len(documents))))
    return [
        item
        for document in documents
        for item in _of_document(document, spans[document.id], pool, of_each)
    ]


def _spans(text: str, patterns: Mapping[GapKind, re.Pattern[str]]) -> Iterator[_Span]:
    """Yield what may be hidden, one at a place: a gap's id says where it is, and no more.

    A heading may begin with a number or a name; there are fewest headings, so that one stays.
    """
    at = {span.start: span for span in _found(text, patterns)}
    yield from at.values()


def _found(text: str, patterns: Mapping[GapKind, re.Pattern[str]]) -> Iterator[_Span]:
    """Yield all that the patterns find, those of headings last."""
    for kind, pattern in patterns.items():
        for match in pattern.finditer(text):
            start, stop = match.span("word" if "word" in pattern.groupindex else 0)
            if text[start:stop] not in _KEYWORDS:
                yield _Span(kind, start, stop)


def _pool(
    documents: Sequence[HeldOutText], spans: Mapping[str, Sequence[_Span]]
) -> dict[tuple[GapKind, int], list[str]]:
    """Return kind and length -> the words of that kind, in an order of chance.

    A word stands there as often as in the text: were each offered once, rare words would stand
    beside the frequent ones that gaps hide, and counting words would be enough to tell them apart.
    """
    found: defaultdict[tuple[GapKind, int], list[tuple[int, str]]] = defaultdict(list)
    for document in documents:
        for span in spans[document.id]:
            word = document.text[span.start : span.stop]
            place = (_chance(f"{document.id}:{span.start}"), word)
            found[_likeness(span.kind, word)].append(place)
    return {key: [word for _, word in sorted(places)] for key, places in found.items()}


def _likeness(kind: GapKind, word: str) -> tuple[GapKind, int]:
    """Return what two words must share to stand beside each other; headings vary more."""
    length = len(word.encode())
    return kind, length // 8 if kind is GapKind.HEADING else length


def _of_document(
    document: HeldOutText,
    spans: Sequence[_Span],
    pool: Mapping[tuple[GapKind, int], Sequence[str]],
    most: int,
) -> list[ClozeItem]:
    drawn: defaultdict[GapKind, list[tuple[int, _Span]]] = defaultdict(list)
    for span in spans:
        if span.start >= BEFORE_CHARS:
            drawn[span.kind].append((_chance(f"{document.id}:{span.start}"), span))
    # Kinds take turns, for there are far more names than numbers and headings.
    turns = sorted(
        (turn, chance, span.start, span)
        for ranked in drawn.values()
        for turn, (chance, span) in enumerate(sorted(ranked, key=lambda pair: pair[0]))
    )
    items = (_item(document, span, pool) for *_, span in turns)
    return list(islice((item for item in items if item is not None), most))


def _item(
    document: HeldOutText, span: _Span, pool: Mapping[tuple[GapKind, int], Sequence[str]]
) -> ClozeItem | None:
    word = document.text[span.start : span.stop]
    name = f"{document.id}:{span.start}"
    offered = _others(word, pool[_likeness(span.kind, word)], _chance(name))
    if len(offered) < DISTRACTORS:
        return None
    return ClozeItem(
        id=name,
        document=document.id,
        cluster=document.cluster,
        kind=span.kind,
        before=document.text[span.start - BEFORE_CHARS : span.start],
        options=(word, *offered),
        after=document.text[span.stop : span.stop + AFTER_CHARS],
    )


def _others(word: str, pool: Sequence[str], chance: int) -> list[str]:
    """Return different words of the pool, beginning at a place that chance says."""
    first, found = chance % len(pool), {word: None}
    for step in range(len(pool)):
        found[pool[(first + step) % len(pool)]] = None
        if len(found) > DISTRACTORS:
            break
    return [*found][1:]


def is_right(nats: Sequence[float], sizes_bytes: Sequence[int]) -> bool:
    """Say whether the first of the filled texts is the likeliest per byte, alone."""
    rates = [value / size for value, size in zip(nats, sizes_bytes, strict=True)]
    return all(rates[0] < rate for rate in rates[1:])


def _chance(text: str) -> int:
    return int.from_bytes(blake3(text.encode("utf-8", "surrogatepass")).digest(8), "big")
