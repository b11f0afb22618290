"""Which source code is worth training on.

Owns the rules and their bounds, most of them those published for StarCoder's data (Li et al. 2023,
arXiv 2305.06161, section 3). Doesn't know prose. Ratios are between 0 and 1.

StarCoder's lower bound of 1 % comments isn't used: a short function rightly has none.
"""

import ast
import re
import warnings
from collections.abc import Mapping

from jupiterd.cycle.drop_reason import DropReason
from jupiterd.cycle.repetition import repeats

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


def judge_code(text: str, language: str) -> tuple[DropReason | None, Mapping[str, float]]:
    """Return why a text is dropped, or None and its scores; cheap rules come first.

    Args:
        text: the file.
        language: the programming language, such as `python`.
    """
    reason = _size(text) or _lines(text) or _generated(text) or _letters(text) or _repeats(text)
    if reason:
        return reason, {}
    comments = _python_comments(text) if language == "python" else _comments(text, language)
    if comments is None or (language != "python" and not _is_paired(text, language)):
        return DropReason.UNPARSABLE, {}
    if comments > MAX_COMMENTS:
        return DropReason.COMMENTS, {}
    return None, _scores(text, comments)


def _scores(text: str, comments: float) -> Mapping[str, float]:
    lengths = [len(line) for line in text.splitlines()]
    return {
        "lines": len(lengths),
        "mean_line_chars": sum(lengths) / len(lengths),
        "alphanumeric": _alphanumeric(text),
        "repeated_lines": repeated_line_share(text),
        "comments": comments,
    }


def _size(text: str) -> DropReason | None:
    if len(text.strip()) < MIN_CHARS:
        return DropReason.TOO_SHORT
    return DropReason.TOO_LONG if len(text) > MAX_CHARS else None


def _lines(text: str) -> DropReason | None:
    lengths = [len(line) for line in text.splitlines()]
    is_minified = max(lengths) > MAX_LINE_CHARS or sum(lengths) / len(lengths) > MAX_MEAN_LINE_CHARS
    return DropReason.MINIFIED if is_minified else None


def _generated(text: str) -> DropReason | None:
    head = "\n".join(text[:GENERATED_HEAD_CHARS].splitlines()[:GENERATED_HEAD_LINES])
    return DropReason.GENERATED if _GENERATED.search(head) else None


def _letters(text: str) -> DropReason | None:
    return DropReason.FEW_LETTERS if _alphanumeric(text) < MIN_ALPHANUMERIC else None


def _alphanumeric(text: str) -> float:
    return sum(map(str.isalnum, text)) / len(text)


def _repeats(text: str) -> DropReason | None:
    share = repeated_line_share(text)
    return DropReason.REPEATED_LINES if share > MAX_REPEATED_LINES else None


def repeated_line_share(text: str) -> float:
    """Return the share of lines with anything in them that stood in the text before."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
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
