"""Whether what a model wrote is code: it is parsed, and never run.

Owns that question for Python. Doesn't know who wrote the text. Other languages have no parser here.
"""

import ast
import warnings

PARSED_LANGUAGES = frozenset({"code:python"})


def parseable_beginning(text: str, min_chars: int, max_chars: int) -> str:
    """Return the longest beginning of whole lines that parses by itself; empty where none does."""
    end = max_chars
    while (end := text.rfind("\n", 0, end)) >= min_chars:
        if is_python(beginning := text[: end + 1]):
            return beginning
    return ""


def parses_on(beginning: str, continued: str) -> bool:
    """Say whether a text goes on as code.

    The last line may be cut off, and so may what it belongs to: it is enough that half of the whole
    lines or more parse together with the beginning, and that they aren't empty.
    """
    lines = continued.split("\n")[:-1]
    for count in range(len(lines), (len(lines) - 1) // 2, -1):
        written = "\n".join(lines[:count])
        if written.strip() and is_python(f"{beginning}{written}\n"):
            return True
    return False


def is_python(text: str) -> bool:
    """Say whether a text is Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
