"""Real functions to be completed, and what of a completion is a function again.

Owns finding functions in Python text, where each is cut, and the longest part that parses. Doesn't
know models or samples.
"""

import ast
import textwrap
import warnings
from dataclasses import dataclass

MIN_LINES = 4
MAX_LINES = 60
MIN_STATEMENTS = 2
"""Of the body, its docstring included: one is the prompt's, one is to be written."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Opening:
    """The beginning of a real function: what a generator is given."""

    prompt: str
    """From the decorators or `def` on, without outer indentation, ending with a line's end."""
    rest: str
    """What really follows."""


def openings(text: str) -> list[Opening]:
    """Return an opening for each function of reasonable size; none where the text doesn't parse."""
    tree = _parsed(text)
    if tree is None:
        return []
    lines = text.splitlines(keepends=True)
    found = [_opening(node, lines) for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    return [opening for opening in found if opening is not None]


def completed(opening: Opening, written: str) -> str | None:
    """Return the longest function of whole lines that begins with the opening; None: nothing fits.

    The last written line counts only if it is complete, or makes sense as it is.
    """
    lines = _body_lines(written)
    for count in range(len(lines), 0, -1):
        if not lines[count - 1].strip():
            continue
        text = (opening.prompt + "".join(lines[:count])).rstrip() + "\n"
        if _is_one_function(text, opening.prompt.count("\n")):
            return text
    return None


def ends_function(written: str) -> bool:
    """Say whether the written text has left the function: a line without indentation has begun."""
    return len(_body_lines(written)) < len(written.splitlines())


def _body_lines(written: str) -> list[str]:
    """Return the lines before the first that stands without indentation."""
    kept: list[str] = []
    for line in written.splitlines(keepends=True):
        if line.strip() and not line[0].isspace():
            break
        kept.append(line)
    return kept


def _opening(node: FunctionNode, lines: list[str]) -> Opening | None:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    if not MIN_LINES <= last - first + 1 <= MAX_LINES or len(node.body) < MIN_STATEMENTS:
        return None
    cut = _cut_line(node)
    if not node.lineno < cut < last:
        return None
    whole = textwrap.dedent("".join(lines[first - 1 : last])).splitlines(keepends=True)
    given = cut - first + 1
    return Opening("".join(whole[:given]), "".join(whole[given:]))


def _cut_line(node: FunctionNode) -> int:
    """Return the last line of the prompt: the docstring's, else of the body's first third."""
    if ast.get_docstring(node, clean=False) is not None:
        return node.body[0].end_lineno or 0
    return node.body[(len(node.body) - 1) // 3].end_lineno or 0


def _is_one_function(text: str, prompt_lines: int) -> bool:
    tree = _parsed(text)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], FunctionNode):
        return False
    # A statement has to follow the prompt: a comment or an open string alone is no completion.
    return tree.body[0].body[-1].lineno > prompt_lines


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd escapes in other people's strings
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
