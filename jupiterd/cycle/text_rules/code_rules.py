"""Which source code is worth training on.

Owns the rules and their bounds, most of them those published for StarCoder's data (Li et al. 2023,
arXiv 2305.06161, section 3). Doesn't know prose. Ratios are between 0 and 1.

StarCoder's lower bound of 1 % comments isn't used: a short function rightly has none.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.judgement import Judgement, Miss, above, below, first_miss
from jupiterd.cycle.text_rules.repetition import repeats

MIN_CHARS = 64  # ours
MAX_CHARS = 1_000_000  # ours; parsing takes 300 times the text in memory
MAX_LINE_CHARS = 1000  # StarCoder
MAX_MEAN_LINE_CHARS = 100  # StarCoder
MIN_ALPHANUMERIC = 0.25  # StarCoder
MAX_COMMENTS = 0.8  # StarCoder
MAX_REPEATED_LINES = 0.5  # ours
"""Higher than for prose: `else:`, `return None` and closing brackets repeat in good code."""
MAX_UNPAIRED_BRACKETS = 0.1  # ours
"""Not nought: `#if` may leave two openings for one closing."""
GENERATED_HEAD_LINES, GENERATED_HEAD_CHARS = 10, 4000

VENDORED = frozenset(
    {
        "3rdparty", "_vendor", "bower_components", "external_libs", "node_modules",
        "site-packages", "third-party", "third_party", "thirdparty", "vendor", "vendored",
        "vendors",
    }
)  # fmt: skip
"""Folders of somebody else's code, which would be taken twice and under a wrong licence."""

_GENERATED = re.compile(
    r"@generated|auto-?generated|automatically generated|generated (by|from) "
    r"|do not (edit|modify)",
    re.IGNORECASE,
)
_HASH_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_SLASH_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|^[ \t]*//[^\n]*", re.MULTILINE | re.DOTALL)
_HASH_LANGUAGES = frozenset({"bash", "julia", "perl", "r", "ruby", "shell", "toml", "yaml"})
_STRING_OR_COMMENT = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
_PAIRS = ("()", "[]", "{}")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
"""What may have a docstring."""


def is_vendored(source_uri: str) -> bool:
    """Say whether a file lies in a folder of somebody else's code."""
    return not VENDORED.isdisjoint(source_uri.split("/")[:-1])


def judge_code(text: str, language: str, off: frozenset[DropReason] = frozenset()) -> Judgement:
    """Return why a text is dropped, or what was measured of it; cheap rules come first.

    Args:
        text: the file.
        language: the programming language, such as `python`.
        off: rules that aren't asked; an empty file is dropped nevertheless.
    """
    if not text.strip():
        return Judgement(DropReason.TOO_SHORT, {}, "characters", 0, MIN_CHARS)
    source = _Source(text, language)
    miss = first_miss(_misses(source), off)
    return Judgement.of_miss(miss) if miss else Judgement(None, _scores(source))


class _Source:
    """A file that isn't empty, and what is counted of it."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language

    @cached_property
    def comments(self) -> float | None:
        """Share of comments; None where it is no such code."""
        is_python = self.language == "python"
        return _python_comments(self.text) if is_python else _comments(self.text, self.language)


def _misses(source: _Source) -> Iterator[Miss]:
    text = source.text
    yield from _size(text)
    yield from _lines(text)
    yield from _generated(text)
    reason = DropReason.FEW_LETTERS
    yield from below(reason, "alphanumeric", _alphanumeric(text), MIN_ALPHANUMERIC)
    share = repeated_line_share(text)
    yield from above(DropReason.REPEATED_LINES, "repeated_lines", share, MAX_REPEATED_LINES)
    if len(text) <= MAX_CHARS:
        yield from _parsed(source)


def _parsed(source: _Source) -> Iterator[Miss]:
    is_python = source.language == "python"
    if source.comments is None or not (is_python or _is_paired(source.text, source.language)):
        yield Miss(DropReason.UNPARSABLE)
    yield from above(DropReason.COMMENTS, "comments", source.comments or 0.0, MAX_COMMENTS)


def _scores(source: _Source) -> Mapping[str, float]:
    text = source.text
    lengths = [len(line) for line in text.splitlines()]
    return {
        "lines": len(lengths),
        "mean_line_chars": sum(lengths) / len(lengths),
        "alphanumeric": _alphanumeric(text),
        "repeated_lines": repeated_line_share(text),
        "comments": source.comments or 0.0,
    }


def _size(text: str) -> Iterator[Miss]:
    yield from below(DropReason.TOO_SHORT, "characters", len(text.strip()), MIN_CHARS)
    yield from above(DropReason.TOO_LONG, "characters", len(text), MAX_CHARS)


def _lines(text: str) -> Iterator[Miss]:
    lengths = [len(line) for line in text.splitlines()]
    reason, longest, mean = DropReason.MINIFIED, max(lengths), sum(lengths) / len(lengths)
    yield from above(reason, "longest_line", longest, MAX_LINE_CHARS)
    yield from above(reason, "mean_line_chars", mean, MAX_MEAN_LINE_CHARS)


def _generated(text: str) -> Iterator[Miss]:
    head = "\n".join(text[:GENERATED_HEAD_CHARS].splitlines()[:GENERATED_HEAD_LINES])
    if _GENERATED.search(head):
        yield Miss(DropReason.GENERATED)


def _alphanumeric(text: str) -> float:
    return sum(map(str.isalnum, text)) / len(text)


def repeated_line_share(text: str) -> float:
    """Return the share of lines with a word in them that stood in the text before.

    Brackets alone on their lines, as some styles have them, say nothing of a text.
    """
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return repeats(lines)[0] if lines else 0.0


def _python_comments(text: str) -> float | None:
    """Return the share of comments and docstrings; None where it is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    chars = sum(map(len, _HASH_COMMENT.findall(text)))
    chars += sum(len(ast.get_docstring(node, clean=False) or "") for node in _documented(tree))
    return chars / len(text)


def _documented(tree: ast.Module) -> list[Documented]:
    return [node for node in ast.walk(tree) if isinstance(node, Documented)]


def _comments(text: str, language: str) -> float:
    pattern = _HASH_COMMENT if language in _HASH_LANGUAGES else _SLASH_COMMENT
    return sum(map(len, pattern.findall(text))) / len(text)


def _is_paired(text: str, language: str) -> bool:
    """Say whether nearly every bracket outside strings and comments has its counterpart."""
    if language in _HASH_LANGUAGES:
        return True  # `case` in a shell closes what it never opened
    bare = _STRING_OR_COMMENT.sub("", text)
    brackets = sum(map(bare.count, "()[]{}"))
    unpaired = sum(abs(bare.count(left) - bare.count(right)) for left, right in _PAIRS)
    return unpaired <= MAX_UNPAIRED_BRACKETS * brackets
