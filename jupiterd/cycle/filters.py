"""Which texts are worth training on: the same rules for real and for generated ones.

Owns the rules and their thresholds. Doesn't know files, sources, or duplicates between texts.

Code: size, line length, letters and generated-file marks, with the bounds published for StarCoder's
data, and for Python that it parses. Prose: the Gopher rules (Rae et al. 2021, table A1) that need
no other text, and FineWeb's line punctuation. Ratios are between 0 and 1.
"""

import ast
import re
import warnings
from collections.abc import Callable
from enum import StrEnum

from jupiterd.cycle.lineage import Sample


class DropReason(StrEnum):
    """Why a text isn't trained on."""

    TOO_SHORT = "too-short"
    TOO_LONG = "too-long"
    MINIFIED = "minified"
    GENERATED = "generated"
    FEW_LETTERS = "few-letters"
    REPEATED_LINES = "repeated-lines"
    UNPARSABLE = "unparsable"
    ODD_WORDS = "odd-words"
    SYMBOLS = "symbols"
    BULLETS = "bullets"
    ELLIPSES = "ellipses"
    NO_STOP_WORDS = "no-stop-words"
    NO_SENTENCES = "no-sentences"
    LICENSE = "license"
    """The domain's license_policy doesn't permit it; found by the worker, which knows the
    policy."""
    IN_HOLDOUT = "in-holdout"
    """Equal to a held-out text; found by the worker, which knows those."""
    DUPLICATE = "duplicate"
    """Equal to a text kept before it; found by the worker."""


CODE_MIN_CHARS = 64
CODE_MAX_CHARS = 1_000_000
CODE_MAX_LINE_CHARS = 1000
CODE_MAX_MEAN_LINE_CHARS = 100
CODE_MIN_ALPHANUMERIC = 0.25
CODE_MAX_REPEATED_LINES = 0.5
"""Higher than for prose: `else:`, `return None` and closing brackets repeat in good code."""
CODE_GENERATED_HEAD_LINES = 10

PROSE_MIN_WORDS, PROSE_MAX_WORDS = 50, 100_000
PROSE_MIN_MEAN_WORD_CHARS, PROSE_MAX_MEAN_WORD_CHARS = 3, 10
PROSE_MAX_SYMBOLS_PER_WORD = 0.1
PROSE_MIN_WORDS_WITH_LETTER = 0.8
PROSE_MAX_REPEATED_LINES = 0.3
PROSE_MAX_BULLET_LINES = 0.9
PROSE_MAX_ELLIPSIS_LINES = 0.3
PROSE_MIN_STOP_WORDS = 2
PROSE_MIN_SENTENCE_LINES = 0.12

_GENERATED = re.compile(
    r"auto-?generated|automatically generated|generated (by|from) |do not edit", re.IGNORECASE
)
_STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})
_LINE_ENDS = (".", "!", "?", '"', "\u201d", ":", ";")


def judge_sample(sample: Sample, language: str) -> DropReason | None:
    """Return why the sample is dropped, or None to keep it.

    Args:
        sample: any sample; what it says of its origin plays no part.
        language: the domain's, such as `code:python` or `en`.
    """
    return judge_text(sample.text, language)


def judge_text(text: str, language: str) -> DropReason | None:
    """Return why a text in `language` is dropped, or None to keep it; cheap rules come first."""
    rules = _rules_for(language)
    return next((reason for rule in rules if (reason := rule(text))), None)


Rule = Callable[[str], DropReason | None]


def _rules_for(language: str) -> tuple[Rule, ...]:
    if language == "code:python":
        return (*_CODE_RULES, _python_parses)
    if language.startswith("code:"):
        return _CODE_RULES
    # Stop words are those of English; other languages go without that rule.
    return (*_PROSE_RULES, _prose_stop_words) if language == "en" else _PROSE_RULES


def _code_size(text: str) -> DropReason | None:
    if len(text.strip()) < CODE_MIN_CHARS:
        return DropReason.TOO_SHORT
    return DropReason.TOO_LONG if len(text) > CODE_MAX_CHARS else None


def _code_lines(text: str) -> DropReason | None:
    lengths = [len(line) for line in text.splitlines()]
    too_long = max(lengths) > CODE_MAX_LINE_CHARS
    return (
        DropReason.MINIFIED
        if too_long or sum(lengths) / len(lengths) > CODE_MAX_MEAN_LINE_CHARS
        else None
    )


def _code_generated(text: str) -> DropReason | None:
    head = "\n".join(text[:4000].splitlines()[:CODE_GENERATED_HEAD_LINES])
    return DropReason.GENERATED if _GENERATED.search(head) else None


def _code_letters(text: str) -> DropReason | None:
    share = sum(map(str.isalnum, text)) / len(text)
    return DropReason.FEW_LETTERS if share < CODE_MIN_ALPHANUMERIC else None


def _code_repeats(text: str) -> DropReason | None:
    share = repeated_line_share(text)
    return DropReason.REPEATED_LINES if share > CODE_MAX_REPEATED_LINES else None


def _python_parses(text: str) -> DropReason | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return DropReason.UNPARSABLE
    return None


def repeated_line_share(text: str) -> float:
    """Return the share of lines with anything in them that stood in the text before."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return 1 - len(set(lines)) / len(lines) if lines else 0.0


def _prose_size(text: str) -> DropReason | None:
    words = len(text.split())
    if words < PROSE_MIN_WORDS:
        return DropReason.TOO_SHORT
    return DropReason.TOO_LONG if words > PROSE_MAX_WORDS else None


def _prose_words(text: str) -> DropReason | None:
    words = text.split()
    mean = sum(map(len, words)) / len(words)
    with_letter = sum(any(map(str.isalpha, word)) for word in words) / len(words)
    if not PROSE_MIN_MEAN_WORD_CHARS <= mean <= PROSE_MAX_MEAN_WORD_CHARS:
        return DropReason.ODD_WORDS
    return DropReason.FEW_LETTERS if with_letter < PROSE_MIN_WORDS_WITH_LETTER else None


def _prose_symbols(text: str) -> DropReason | None:
    symbols = max(text.count("#"), text.count("...") + text.count("\u2026"))
    per_word = symbols / len(text.split())
    return DropReason.SYMBOLS if per_word > PROSE_MAX_SYMBOLS_PER_WORD else None


def _prose_repeats(text: str) -> DropReason | None:
    share = repeated_line_share(text)
    return DropReason.REPEATED_LINES if share > PROSE_MAX_REPEATED_LINES else None


def _prose_lines(text: str) -> DropReason | None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    bullets = sum(line.startswith(("-", "*", "\u2022")) for line in lines) / len(lines)
    ellipses = sum(line.endswith(("...", "\u2026")) for line in lines) / len(lines)
    sentences = sum(line.endswith(_LINE_ENDS) for line in lines) / len(lines)
    if bullets > PROSE_MAX_BULLET_LINES:
        return DropReason.BULLETS
    if ellipses > PROSE_MAX_ELLIPSIS_LINES:
        return DropReason.ELLIPSES
    return DropReason.NO_SENTENCES if sentences < PROSE_MIN_SENTENCE_LINES else None


def _prose_stop_words(text: str) -> DropReason | None:
    found = _STOP_WORDS.intersection(word.strip(".,;:!?").lower() for word in text.split())
    return DropReason.NO_STOP_WORDS if len(found) < PROSE_MIN_STOP_WORDS else None


_CODE_RULES: tuple[Rule, ...] = (
    _code_size,
    _code_lines,
    _code_generated,
    _code_letters,
    _code_repeats,
)
_PROSE_RULES: tuple[Rule, ...] = (
    _prose_size,
    _prose_words,
    _prose_symbols,
    _prose_repeats,
    _prose_lines,
)
