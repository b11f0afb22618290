"""Which prose is worth training on.

Owns the rules of Gopher (Rae et al. 2021, arXiv 2112.11446, table A1 and section A.1), C4 (Raffel
et al. 2020, JMLR 21/140) and FineWeb (Penedo et al. 2024, arXiv 2406.17557) that judge a document,
with their published bounds, counted as datatrove does. Doesn't know code, or whether a text is in
the language that it is said to be in.

Lines need no full stop to count for C4, as in FineWeb. C4's rules that rewrite a text aren't here:
a text is kept as it is, or not at all.

In a language without spaces between words (`unspaced`) these differ, and no others: words are
estimated, and their length isn't judged; repeated runs are of letters, and the commonest run of
words isn't looked for, which would be one of clauses; sentences need no space between them, and
aren't asked for where the language has no mark for their end.
"""

import string
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from jupiterd.cycle.drop_reason import DropReason
from jupiterd.cycle.repetition import repeated_blocks, repeated_letters, repeated_phrases, repeats
from jupiterd.cycle.unspaced import (
    LETTERS_PER_WORD,
    WITHOUT_SENTENCE_MARKS,
    ZERO_WIDTH_SPACE,
    count_marked_sentences,
    estimated_words,
    letters_of,
)
from jupiterd.cycle.words import count_sentences, split_words

MIN_WORDS, MAX_WORDS = 50, 100_000  # Gopher
MIN_MEAN_WORD_CHARS, MAX_MEAN_WORD_CHARS = 3, 10  # Gopher
MAX_SYMBOLS_PER_WORD = 0.1  # Gopher: hashes, and ellipses
MAX_BULLET_LINES = 0.9  # Gopher
MAX_ELLIPSIS_LINES = 0.3  # Gopher
MIN_WORDS_WITH_LETTER = 0.8  # Gopher; of words and marks
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
        with_letter = sum(times for word, times in words.items() if _has_letter(word))
        return {
            "words": total,
            "mean_word_chars": chars / max(1, total),
            "words_with_letter": with_letter / max(1, self.words_and_marks),
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


def judge_prose(text: str, language: str) -> tuple[DropReason | None, Mapping[str, float]]:
    """Return why the text is dropped, or None and its scores; cheap rules come first."""
    if not text.strip():
        return DropReason.TOO_SHORT, {}
    prose = Prose(text, language)
    reason = (
        _gopher_words(prose)
        or _gopher_lines(prose)
        or _fineweb_lines(prose)
        or (_gopher_stop_words(prose) if language == "en" else None)
        or _fineweb_list(prose)
        or _c4(prose)
        or repeated_blocks(text)
        or _repeated_runs(prose)
    )
    return reason, {} if reason else prose.scores


def _repeated_runs(prose: Prose) -> DropReason | None:
    if prose.is_spaced:
        return repeated_phrases(prose.words, len(prose.text))
    return repeated_letters(letters_of(prose.text), LETTERS_PER_WORD[prose.language])


def _fineweb_lines(prose: Prose) -> DropReason | None:
    lines = prose.lines
    if prose.has_sentence_marks and prose.scores["sentence_lines"] < MIN_SENTENCE_LINES:
        return DropReason.NO_SENTENCES
    if sum(len(line) <= SHORT_LINE_CHARS for line in lines) / len(lines) > MAX_SHORT_LINES:
        return DropReason.SHORT_LINES
    chars = len(prose.text) - prose.text.count("\n")
    is_repeated = repeats(lines)[1] / chars > MAX_REPEATED_LINE_CHARS
    return DropReason.REPEATED_LINES if is_repeated else None


def _fineweb_list(prose: Prose) -> DropReason | None:
    per_word = prose.text.count("\n") / prose.words_and_marks
    return DropReason.LIST if per_word > MAX_LINES_PER_WORD else None


def _gopher_lines(prose: Prose) -> DropReason | None:
    lines = prose.text.splitlines()
    bullets = sum(line.lstrip().startswith(_BULLETS) for line in lines) / len(lines)
    if bullets > MAX_BULLET_LINES:
        return DropReason.BULLETS
    ellipses = sum(line.rstrip().endswith(_ELLIPSES) for line in lines) / len(lines)
    return DropReason.ELLIPSES if ellipses > MAX_ELLIPSIS_LINES else None


def _gopher_words(prose: Prose) -> DropReason | None:
    scores, text = prose.scores, prose.text
    if scores["words"] < MIN_WORDS:
        return DropReason.TOO_SHORT
    if scores["words"] > MAX_WORDS:
        return DropReason.TOO_LONG
    mean_chars = scores.get("mean_word_chars", MIN_MEAN_WORD_CHARS)
    if not MIN_MEAN_WORD_CHARS <= mean_chars <= MAX_MEAN_WORD_CHARS:
        return DropReason.ODD_WORDS
    symbols = max(text.count("#"), text.count("...") + text.count("\u2026"))
    if symbols / prose.words_and_marks > MAX_SYMBOLS_PER_WORD:
        return DropReason.SYMBOLS
    few = scores["words_with_letter"] < MIN_WORDS_WITH_LETTER
    return DropReason.FEW_LETTERS if few else None


def _gopher_stop_words(prose: Prose) -> DropReason | None:
    found = STOP_WORDS & prose.counts.keys()
    return DropReason.NO_STOP_WORDS if len(found) < MIN_STOP_WORDS else None


def _c4(prose: Prose) -> DropReason | None:
    wanted = MIN_SENTENCES if prose.has_sentence_marks else 0
    sentences = 0
    for line in map(str.strip, prose.text.splitlines()):
        if prose.words_of(line) < MIN_LINE_WORDS or _has_endless_word(prose, line):
            continue
        lower = line.lower()
        if "lorem ipsum" in lower:
            return DropReason.PLACEHOLDER
        if "javascript" in lower:
            continue
        if "{" in line:
            return DropReason.CURLY_BRACKET
        if sentences < wanted and not any(map(lower.__contains__, POLICY_PHRASES)):
            sentences += prose.sentences_of(line)
    return DropReason.FEW_SENTENCES if sentences < wanted else None


def _has_endless_word(prose: Prose, line: str) -> bool:
    return prose.is_spaced and max(map(len, line.split())) > MAX_LINE_WORD_CHARS
