"""Lines of Markdown put together where Markdown itself puts them together.

Owns which lines are one paragraph to it. Code, tables, headings and HTML stay as they are; so do
lines that end with a hard break, and directives that other tools write between paragraphs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from jupiterd.cycle.text_rules.word_breaks import TextWords, before_next

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[^\S\n]*\n.*?\n(?:\1|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_HARD_BREAK = re.compile(r"(?: {2}|\\)$")
_MATH = re.compile(r"\s*(?:\$\$|\\\[)\s*$")
_DIRECTIVE = re.compile(
    r"\s*(?:!!!|\?\?\?|///|:::|\{[%{*#]|\.\. |%%|\||: |\[\^?[^\]]{1,99}\]:"
    r"|</?[\w.]+(?:\s[^<>]*)?>$|import\s.{1,200}\sfrom\s|export\s+(?:const|default|function)\b)"
)


def unwrapped_markdown(text: str) -> str:
    """Return the text with the lines of each paragraph joined.

    Args:
        text: with a line feed alone at the end of each line; blanks before it have a meaning.
    """
    front = _FRONT_MATTER.match(text)
    start = front.end() if front is not None else 0
    paragraphs = list(_paragraphs(text[start:]))
    if not paragraphs:
        return text
    lines = [f"{line}\n" for line in text[start:].split("\n")]
    vocabulary = TextWords.of(text)
    for first, contents in paragraphs:
        _join(lines, first, contents, vocabulary)
    return text[:start] + "".join(lines)[:-1]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _paragraphs(text: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield of each paragraph with several lines the first one's number, and what is in each."""
    tokens: list[Token] = []
    _parser().block.parse(text, _parser(), {}, tokens)
    for opening, inline in pairwise(tokens):
        if opening.type != "paragraph_open" or inline.map is None:
            continue
        first, last = inline.map
        contents = inline.content.split("\n")
        if 1 < len(contents) == last - first and not any(map(_MATH.match, contents)):
            yield first, contents


def _join(lines: list[str], first: int, contents: Sequence[str], vocabulary: TextWords) -> None:
    """Join the lines of one paragraph in place; each keeps its number."""
    directives = [_DIRECTIVE.match(content) is not None for content in contents]
    for number in range(len(contents) - 1):
        here, following = lines[first + number], contents[number + 1].strip()
        if directives[number] or directives[number + 1] or _HARD_BREAK.search(here[:-1]):
            continue
        lines[first + number] = before_next(here.rstrip(), following, vocabulary)
        lines[first + number + 1] = f"{contents[number + 1].lstrip()}\n"
