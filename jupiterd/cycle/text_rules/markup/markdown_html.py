"""HTML between the lines of Markdown: what is left out whole, and what is read on without its tags.

Owns which elements are which. Doesn't know Markdown, nor pages that are HTML altogether.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from jupiterd.cycle.text_rules.markup.blocks import Block, BlockKind, Found, code
from jupiterd.cycle.text_rules.markup.line_search import SearchedLines

MAX_TAG_LINES = 40
"""A tag that goes on for longer isn't one."""

_OPENED = re.compile(r"<(!--|[A-Za-z][\w.:-]*)")
_LEFT_OUT = frozenset(
    {
        "script",
        "style",
        "iframe",
        "svg",
        "video",
        "audio",
        "object",
        "canvas",
        "form",
        "nav",
        "head",
    }
)
_INLINE = frozenset(
    (  # noqa: SIM905 - a long tuple otherwise
        "a abbr b bdi bdo br cite code data del dfn em font i ins kbd label mark q s samp small "
        "span strong sub sup time tt u var wbr img input button http https mailto ftp"
    ).split()
)
_TAGS = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")


def html_blocks(lines: SearchedLines, at: int) -> Found | None:
    """Return what an element that begins a line holds; None where it is part of a paragraph."""
    line = lines[at].strip()
    if line.startswith("</"):
        closed = re.match(r"</([A-Za-z][\w.:-]*)[ \t]*>[ \t]*$", line)
        return ([], at + 1) if closed else None
    opened = _OPENED.match(line)
    if not opened or opened[1].lower() in _INLINE:
        return None
    name = opened[1]
    if name == "!--":
        return [], _after(lines, at, "-->")
    if name.lower() in _LEFT_OUT:
        is_empty = re.search(r"/>[ \t]*$", line)
        return [], at + 1 if is_empty else _after(lines, at, f"</{name}")
    return _READERS.get(name.lower(), _tags)(lines, at)


def _after(lines: SearchedLines, at: int, closing: str) -> int:
    """Return the number of the line after the one that closes it; the next one where none does."""
    found = lines.next_holding(closing, at)
    return at + 1 if found is None else found + 1


def _table(lines: SearchedLines, at: int) -> Found:
    end = _after(lines, at, "</table")
    return [Block(BlockKind.TABLE, tuple(lines[at:end]))], end


def _example(lines: SearchedLines, at: int) -> Found:
    end = _after(lines, at, "</pre")
    body = "\n".join(lines[at:end])
    return code(_TAGS.sub("", body).split("\n")), end


def _tags(lines: SearchedLines, at: int) -> Found:
    """Leave out tags alone on their lines, and read the text between others as a paragraph."""
    end = at + 1
    joined = lines[at]
    while "<" in _TAGS.sub("", joined) and end < min(len(lines), at + MAX_TAG_LINES):
        if not lines[end].strip():
            break
        joined += f" {lines[end].strip()}"
        end += 1
    if "<" in _TAGS.sub("", joined):
        joined, end = lines[at], at + 1
    text = _TAGS.sub(" ", joined).strip()
    return ([Block(BlockKind.PARAGRAPH, (text,))] if text else []), end


_READERS: Mapping[str, Callable[[SearchedLines, int], Found]] = MappingProxyType(
    {"table": _table, "pre": _example}
)
