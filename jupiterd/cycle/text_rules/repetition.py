"""How much of a text repeats itself: lines, paragraphs and runs of words.

Owns the counts and the bounds of Gopher (Rae et al. 2021, arXiv 2112.11446, table A1), counted as
datatrove's GopherRepetitionFilter does. Doesn't know other rules.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.judgement import Miss, above

MAX_REPEATED_PARAGRAPHS = 0.3
MAX_REPEATED_PARAGRAPH_CHARS = 0.2
MAX_REPEATED_LINES = 0.3
MAX_REPEATED_LINE_CHARS = 0.2
MAX_TOP_N_GRAM_CHARS = {2: 0.2, 3: 0.18, 4: 0.16}
"""Words in a run -> greatest share of the text that its commonest run may make up."""
MAX_REPEATED_N_GRAM_CHARS = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1}
"""Words in a run -> greatest share of the text that stood in it before, in runs of that length."""

_SHORTEST_REPEAT = min(MAX_REPEATED_N_GRAM_CHARS)
_STRICTEST_REPEAT = min(MAX_REPEATED_N_GRAM_CHARS.values())
_PARAGRAPH_END = re.compile("\n{2,}")
_LINE_END = re.compile("\n+")


def repeated_blocks(text: str) -> Iterator[Miss]:
    """Yield what is missed where too many paragraphs or lines stood in the text before."""
    share, chars = repeats(_PARAGRAPH_END.split(text.strip()))
    reason = DropReason.REPEATED_PARAGRAPHS
    yield from above(reason, "repeated_paragraphs", share, MAX_REPEATED_PARAGRAPHS)
    chars_share = chars / len(text)
    limit = MAX_REPEATED_PARAGRAPH_CHARS
    yield from above(reason, "repeated_paragraph_chars", chars_share, limit)
    share, chars = repeats(_LINE_END.split(text))
    reason = DropReason.REPEATED_LINES
    yield from above(reason, "repeated_lines", share, MAX_REPEATED_LINES)
    yield from above(reason, "repeated_line_chars", chars / len(text), MAX_REPEATED_LINE_CHARS)


def repeats(blocks: Sequence[str]) -> tuple[float, int]:
    """Return the share of blocks that stood there before, and how many characters those have."""
    if len(set(blocks)) == len(blocks):
        return 0.0, 0
    seen: set[str] = set()
    again: list[str] = []
    for block in blocks:
        if block in seen:
            again.append(block)
        seen.add(block)
    return len(again) / len(blocks), sum(map(len, again))


def repeated_phrases(words: Sequence[str], text_chars: int) -> Iterator[Miss]:
    """Yield what is missed where one run of words, or repeated ones, make up too much of a text."""
    yield from _frequent_phrase(words, text_chars)
    # What is repeated in longer runs is repeated in shorter ones, so one look is mostly enough.
    if _most_repeated_chars(words) > _STRICTEST_REPEAT * text_chars:
        yield from _repeated_runs(words, 1, text_chars)


def repeated_letters(letters: str, letters_per_word: int) -> Iterator[Miss]:
    """Yield what is missed where repeated runs make up too much, in a text without cut words."""
    return _repeated_runs(letters, letters_per_word, len(letters))


def _repeated_runs(units: Sequence[str], units_per_word: int, chars: int) -> Iterator[Miss]:
    for n, limit in MAX_REPEATED_N_GRAM_CHARS.items():
        repeated = repeated_n_gram_chars(units, n * units_per_word)
        # Compared as whole numbers are: a share is rounded.
        if repeated > limit * chars:
            measure = f"repeated_runs_of_{n}_words"
            yield Miss(DropReason.REPEATED_PHRASES, measure, repeated / chars, limit)


def _frequent_phrase(words: Sequence[str], text_chars: int) -> Iterator[Miss]:
    longest = max(map(len, words), default=0)
    times = len(words)
    for n, limit in MAX_TOP_N_GRAM_CHARS.items():
        # A run is no more frequent than the shorter ones within it.
        if times * (n * longest + n - 1) <= limit * text_chars:
            continue
        chars, times = top_n_gram(words, n)
        if chars > limit * text_chars:
            measure = f"commonest_run_of_{n}_words"
            yield Miss(DropReason.FREQUENT_PHRASE, measure, chars / text_chars, limit)


def top_n_gram(words: Sequence[str], n: int) -> tuple[int, int]:
    """Return how many characters the commonest run of n words makes up, and how often it comes."""
    counts = Counter(_n_grams(words, n))
    if not counts:
        return 0, 0
    n_gram, times = max(counts.items(), key=itemgetter(1))
    return (sum(map(len, n_gram)) + n - 1) * times, times


def _n_grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(n)), strict=False)


def _most_repeated_chars(words: Sequence[str]) -> int:
    """Return an upper bound of the characters that are repeated in runs of any length."""
    n_grams = list(_n_grams(words, _SHORTEST_REPEAT))
    if len(set(n_grams)) == len(n_grams):
        return 0
    seen: set[tuple[str, ...]] = set()
    chars = end = 0
    for start, n_gram in enumerate(n_grams):
        if n_gram in seen:
            fresh = words[max(start, end) : start + _SHORTEST_REPEAT]
            chars += sum(map(len, fresh))
            end = start + _SHORTEST_REPEAT
        else:
            seen.add(n_gram)
    return chars


def repeated_n_gram_chars(words: Sequence[str], n: int) -> int:
    """Return the characters in runs of n words that came before, none counted twice."""
    seen: set[str] = set()
    chars = start = 0
    while start <= len(words) - n:
        run = "".join(words[start : start + n])
        if run in seen:
            chars += len(run)
            start += n
        else:
            seen.add(run)
            start += 1
    return chars
