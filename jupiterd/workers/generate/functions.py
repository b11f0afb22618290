"""Real functions to be completed, and what of a completion is a function again.

Owns finding functions in Python text, where each is cut, and the longest part that parses. Doesn't
know models or samples.
"""

import ast
import itertools
import textwrap
import warnings
from dataclasses import dataclass

MIN_LINES = 4
MAX_LINES = 60
MIN_STATEMENTS = 2
"""Of the body, its docstring included: one is the prompt's, one is to be written."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class FunctionOpening:
    """The beginning of a real function: what a generator is given."""

    prompt: str
    """Whole lines from the decorators or `def` on, indented as they are in their file: a model has
    seen methods indented. Then the next line's indentation but for its last column, because tokens
    of source code hold that one together with the word after it."""
    indent: int
    """Columns that `def` is indented by."""


def openings(text: str) -> list[FunctionOpening]:
    """Return an opening for each function of reasonable size; none where the text doesn't parse."""
    tree = _parsed(text)
    if tree is None:
        return []
    lines = text.splitlines(keepends=True)
    found = [_opening(node, lines) for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    return [opening for opening in found if opening is not None]


def completed(opening: FunctionOpening, written: str) -> str | None:
    """Return the longest function of whole lines that begins with the opening; None: nothing fits.

    It comes without outer indentation. A last line that was broken off doesn't count.
    """
    lines = (opening.prompt + written).splitlines(keepends=True)
    given = opening.prompt.count("\n")
    body = list(itertools.takewhile(lambda line: not _leaves(line, opening.indent), lines[given:]))
    for count in range(len(body), 0, -1):
        if not body[count - 1].strip() or not body[count - 1].endswith("\n"):
            continue
        text = textwrap.dedent("".join([*lines[:given], *body[:count]])).rstrip() + "\n"
        if _is_one_function(text, given):
            return text
    return None


def ends_function(written: str, indent: int) -> bool:
    """Say whether what follows an opening has left the function: a line has come back to `def`."""
    return any(_leaves(line, indent) for line in written.split("\n")[1:])


def _leaves(line: str, indent: int) -> bool:
    code = line.strip()
    return bool(code) and len(line) - len(line.lstrip()) <= indent and not code.startswith("#")


def _opening(node: FunctionNode, lines: list[str]) -> FunctionOpening | None:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    if not MIN_LINES <= last - first + 1 <= MAX_LINES or len(node.body) < MIN_STATEMENTS:
        return None
    cut = _cut_line(node)
    if not node.lineno < cut < last:
        return None
    margin = lines[node.body[0].lineno - 1][: node.body[0].col_offset]
    if margin.strip():  # `def f(): return 1`
        return None
    return FunctionOpening("".join(lines[first - 1 : cut]) + margin[:-1], node.col_offset)


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
