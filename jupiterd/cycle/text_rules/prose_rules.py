"""Which prose is worth training on.

Owns the rules of Gopher (Rae et al. 2021, arXiv 2112.11446, table A1 and section A.1), C4 (Raffel
et al. 2020, JMLR 21/140) and FineWeb (Penedo et al. 2024, arXiv 2406.17557) that judge a document,
with their published bounds, counted as datatrove does, but for one: words with a letter are counted
among what stands between spaces, as Gopher's paper says. datatrove counts every mark as a word of
its own, by which good English with quotes and brackets is dropped. Doesn't know code, markup, or
whether a text is in the language that it is said to be in.

Lines need no full stop to count for C4, as in FineWeb. C4's rules that rewrite a text aren't here:
a text is kept as it is, or not at all.

In a language without spaces between words (`unsegmented_scripts`) these differ, and no others:
words are estimated, and their length isn't judged; repeated runs are of letters, and the commonest
run of words isn't looked for, which would be one of clauses; sentences need no space between them,
and aren't asked for where the language has no mark for their end.
"""

import string
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.base.unsegmented_scripts import (
    LETTERS_PER_WORD,
    WITHOUT_SENTENCE_MARKS,
    ZERO_WIDTH_SPACE,
    count_marked_sentences,
    estimated_words,
    letters_of,
)
from jupiterd.cycle.base.word_count import count_sentences, split_words
from jupiterd.cycle.text_rules.judgement import Judgement, Miss, above, below, first_miss
from jupiterd.cycle.text_rules.repetition import (
    repeated_blocks,
    repeated_letters,
    repeated_phrases,
    repeats,
)

MIN_WORDS, MAX_WORDS = 50, 100_000  # Gopher
MIN_MEAN_WORD_CHARS, MAX_MEAN_WORD_CHARS = 3, 10  # Gopher
MAX_SYMBOLS_PER_WORD = 0.1  # Gopher: hashes, and ellipses
MAX_BULLET_LINES = 0.9  # Gopher
MAX_ELLIPSIS_LINES = 0.3  # Gopher
MIN_WORDS_WITH_LETTER = 0.8  # Gopher; of what stands between spaces
MIN_STOP_WORDS = 2  # Gopher; different ones
STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})  # Gopher; English

MIN_SENTENCES = 5  # C4
MIN_LINE_WORDS = 3  # C4; shorter lines hold no sentence
MAX_LINE_WORD_CHARS = 1000  # C4; such a line holds no sentence
POLICY_PHRASES = (  # C4; such a line holds no sentence
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)

MIN_SENTENCE_LINES = 0.12  # FineWeb
MAX_SHORT_LINES, SHORT_LINE_CHARS = 0.67, 30  # FineWeb
MAX_REPEATED_LINE_CHARS = 0.01  # FineWeb
MAX_LINES_PER_WORD = 0.3  # FineWeb

_ELLIPSES = ("...", "\u2026")
_BULLETS = ("\u2022", "-")
_SENTENCE_ENDS = frozenset(
    ".!?\u203c\u203d\u2047\u2048\u2049\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u0964\u0965"
    "\u104a\u104b\u1362\u1367\u1368\u166e\u17d4\u17d5\u1803\u1809\u3002\ufe52\ufe56\ufe57\uff01"
    "\uff0e\uff1f\uff61"
)
_MARKS = (
    string.punctuation
    + "".join(_SENTENCE_ENDS)
    + "\u2014\u2013\u2026\u201c\u201d\u201e\u2018\u2019\u00b4\u00ab\u00bb\u25ba\u2236\u2501"
    + "\u3001\u3008\u3009\u300a\u300b\u300c\u300d\u3010\u3011"
    + "\uff05\uff08\uff09\uff0c\uff1a\uff1b\uff5e"
)


class Prose:
    """A text that isn't empty, and what is counted of it."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.lines = [line for line in text.split("\n") if line.strip()]
        self.language = language
        self.is_spaced = language not in LETTERS_PER_WORD
        self.has_sentence_marks = language not in WITHOUT_SENTENCE_MARKS

    @cached_property
    def words(self) -> list[str]:
        """Words and marks."""
        return split_words(self.text)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word and mark comes."""
        return Counter(self.words)

    @cached_property
    def words_and_marks(self) -> int:
        """How many of both there are."""
        if self.is_spaced:
            return len(self.words)
        without = sum(
            times
            for word, times in self.counts.items()
            if not _has_letter(word) and word != ZERO_WIDTH_SPACE
        )
        return max(1, estimated_words(self.text, self.language) + without)

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """What is kept with a sample that is trained on."""
        sentence_lines = sum(line[-1] in _SENTENCE_ENDS for line in self.lines) / len(self.lines)
        counted = self._counted() if self.is_spaced else self._estimated()
        return {**counted, "sentence_lines": sentence_lines}

    def _counted(self) -> Mapping[str, float]:
        words = {word: times for word, times in self.counts.items() if word.strip(_MARKS)}
        total = sum(words.values())
        chars = sum(len(word) * times for word, times in words.items())
        spaced = self.text.split()
        return {
            "words": total,
            "mean_word_chars": chars / max(1, total),
            "words_with_letter": sum(map(_has_letter, spaced)) / len(spaced),
        }

    def _estimated(self) -> Mapping[str, float]:
        words = estimated_words(self.text, self.language)
        return {"words": words, "words_with_letter": words / self.words_and_marks}

    def words_of(self, line: str) -> int:
        """Return how many words a line has."""
        return len(line.split()) if self.is_spaced else estimated_words(line, self.language)

    def sentences_of(self, line: str) -> int:
        """Return how many sentences a line has."""
        return count_sentences(line) if self.is_spaced else count_marked_sentences(line)


def _has_letter(word: str) -> bool:
    return word.isalpha() or any(map(str.isalpha, word))


def judge_prose(text: str, language: str, off: frozenset[DropReason] = frozenset()) -> Judgement:
    """Return why the text is dropped, or what was measured of it; cheap rules come first.

    Args:
        text: sentences, without the marks of any markup.
        language: natural, such as `en`.
        off: rules that aren't asked; an empty text is dropped nevertheless.
    """
    if not text.strip():
        return Judgement(DropReason.TOO_SHORT, {}, "words", 0, MIN_WORDS)
    prose = Prose(text, language)
    miss = first_miss(_misses(prose), off)
    return Judgement.of_miss(miss) if miss else Judgement(None, prose.scores, prose=text)


def _misses(prose: Prose) -> Iterator[Miss]:
    yield from _gopher_words(prose)
    yield from _gopher_lines(prose)
    yield from _fineweb_lines(prose)
    if prose.language == "en":
        yield from _gopher_stop_words(prose)
    yield from _fineweb_list(prose)
    yield from _c4(prose)
    yield from repeated_blocks(prose.text)
    yield from _repeated_runs(prose)


def repeated_runs(text: str, language: str) -> Iterator[Miss]:
    """Yield what is missed where one run of words, or repeated ones, make up too much of a text."""
    return _repeated_runs(Prose(text, language))


def _repeated_runs(prose: Prose) -> Iterator[Miss]:
    if prose.is_spaced:
        return repeated_phrases(prose.words, len(prose.text))
    return repeated_letters(letters_of(prose.text), LETTERS_PER_WORD[prose.language])


def _fineweb_lines(prose: Prose) -> Iterator[Miss]:
    lines, scores = prose.lines, prose.scores
    if prose.has_sentence_marks:
        name = "sentence_lines"
        yield from below(DropReason.NO_SENTENCES, name, scores[name], MIN_SENTENCE_LINES)
    short = sum(len(line) <= SHORT_LINE_CHARS for line in lines) / len(lines)
    yield from above(DropReason.SHORT_LINES, "short_lines", short, MAX_SHORT_LINES)
    share = repeats(lines)[1] / (len(prose.text) - prose.text.count("\n"))
    reason = DropReason.REPEATED_LINES
    yield from above(reason, "repeated_line_chars", share, MAX_REPEATED_LINE_CHARS)


def _fineweb_list(prose: Prose) -> Iterator[Miss]:
    per_word = prose.text.count("\n") / prose.words_and_marks
    yield from above(DropReason.LIST, "lines_per_word", per_word, MAX_LINES_PER_WORD)


def _gopher_lines(prose: Prose) -> Iterator[Miss]:
    lines = prose.text.splitlines()
    bullets = sum(line.lstrip().startswith(_BULLETS) for line in lines) / len(lines)
    yield from above(DropReason.BULLETS, "bullet_lines", bullets, MAX_BULLET_LINES)
    ellipses = sum(line.rstrip().endswith(_ELLIPSES) for line in lines) / len(lines)
    yield from above(DropReason.ELLIPSES, "ellipsis_lines", ellipses, MAX_ELLIPSIS_LINES)


def _gopher_words(prose: Prose) -> Iterator[Miss]:
    scores, text = prose.scores, prose.text
    yield from below(DropReason.TOO_SHORT, "words", scores["words"], MIN_WORDS)
    yield from above(DropReason.TOO_LONG, "words", scores["words"], MAX_WORDS)
    if (chars := scores.get("mean_word_chars")) is not None:
        yield from below(DropReason.ODD_WORDS, "mean_word_chars", chars, MIN_MEAN_WORD_CHARS)
        yield from above(DropReason.ODD_WORDS, "mean_word_chars", chars, MAX_MEAN_WORD_CHARS)
    symbols = max(text.count("#"), text.count("...") + text.count("\u2026"))
    share = symbols / prose.words_and_marks
    yield from above(DropReason.SYMBOLS, "symbols_per_word", share, MAX_SYMBOLS_PER_WORD)
    name = "words_with_letter"
    yield from below(DropReason.FEW_LETTERS, name, scores[name], MIN_WORDS_WITH_LETTER)


def _gopher_stop_words(prose: Prose) -> Iterator[Miss]:
    found = len(STOP_WORDS & prose.counts.keys())
    yield from below(DropReason.NO_STOP_WORDS, "stop_words", found, MIN_STOP_WORDS)


def _c4(prose: Prose) -> Iterator[Miss]:
    wanted = MIN_SENTENCES if prose.has_sentence_marks else 0
    sentences = 0
    for line in map(str.strip, prose.text.splitlines()):
        if prose.words_of(line) < MIN_LINE_WORDS or _has_endless_word(prose, line):
            continue
        lower = line.lower()
        if "lorem ipsum" in lower:
            yield Miss(DropReason.PLACEHOLDER)
        if "javascript" in lower:
            continue
        if "{" in line:
            yield Miss(DropReason.CURLY_BRACKET)
        if sentences < wanted and not any(map(lower.__contains__, POLICY_PHRASES)):
            sentences += prose.sentences_of(line)
    yield from below(DropReason.FEW_SENTENCES, "sentences", sentences, wanted)


def _has_endless_word(prose: Prose, line: str) -> bool:
    return prose.is_spaced and max(map(len, line.split())) > MAX_LINE_WORD_CHARS
