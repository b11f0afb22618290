"""AsciiDoc as blocks.

Owns its syntax. Every line comes out as Markdown; what names other files or pictures goes.
"""

import re
from collections.abc import Sequence

from jupiterd.cycle.text_rules.markup.asciidoc_titles import title_level
from jupiterd.cycle.text_rules.markup.blocks import (
    MAX_DEPTH,
    Block,
    Found,
    as_item,
    code,
    heading,
    paragraph,
)
from jupiterd.cycle.text_rules.markup.line_search import SearchedLines

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_DELIMITER = re.compile(
    r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|```\w*|[|,:!]={3,})[ \t]*$"
)
_ATTRIBUTES = re.compile(r"\[\[?([^\]\n]{0,500})\]\]?$|:!?[\w-]+!?:(?:[ \t].*)?$|\.\w[^\n]{0,200}$")
_SOURCE = re.compile(r"\[(?:source|,)[ \t]*,?[ \t]*([\w+#-]*)")
_LEFT_OUT = re.compile(
    r"//(?!//)|(?:include|image|video|audio|toc|ifdef|ifndef|ifeval|endif)::\S*\[.*$|<<<$|'{3}$"
)
_NOTE = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+")
_ITEM = re.compile(r"(\*{1,5}|-|\.{1,5}|\d{1,4}\.)[ \t]+(\S.*)$")
_TERM = re.compile(r"(\S.{0,200}?)(?:::|;;)(?:[ \t]+(.*))?$")
_MACRO = re.compile(r"(?:link|xref|mailto|https?)::?[^\s\[\]]{1,1000}\[([^\]\n]{0,500})\]")
_MANUAL = re.compile(r"(?:linkgit|man):([^\s\[\]]{1,200})\[(\w{0,8})\]")
"""A page of a manual: `linkgit:git-add[1]` is read as git-add(1)."""
_CROSS = re.compile(r"<<[^<>,\n]{1,200}(?:,[ \t]*([^<>\n]{1,300}))?>>")
_ANCHOR = re.compile(
    r"\[\[[^\]\n]{1,200}\]\]|\[#[^\]\n]{1,100}\]"
    r"|(?:anchor|indexterm2?|image|icon|footnote):[^\s\[]{0,300}\[[^\]\n]{0,500}\]"
    r"|\(\(\([^()\n]{1,200}\)\)\)"
)
_STRONG = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,500}?)(?<=\S)\*(?![\w*])")
_ROLE = re.compile(r"\[\.?[\w-]{1,40}\](?=[#`*_])")
_VARIABLE = re.compile(r"\{[\w-]{1,60}\}")
_LEFT_OUT_BLOCKS = frozenset("/|,:!+")


def asciidoc_blocks(lines: Sequence[str], depth: int = 0) -> list[Block]:
    """Return the blocks of a text's lines."""
    if depth > MAX_DEPTH:
        return paragraph([_marks(line) for line in lines])
    found: list[Block] = []
    at, language = 0, ""
    lines = SearchedLines(lines)
    while at < len(lines):
        line = lines[at].strip()
        if source := _SOURCE.match(line):
            language = source[1].lower()
        if not line or line == "+" or _ATTRIBUTES.match(line) or _LEFT_OUT.match(line):
            at += 1
            continue
        if level := title_level(lines, at):
            blocks, at = heading(_marks(line), level), at + 2
        elif delimiter := _DELIMITER.match(line):
            blocks, at = _delimited(lines, at, delimiter[1], depth, language)
        else:
            blocks, at = _lines(lines, at, language)
        found += blocks
        language = ""
    return found


def _lines(lines: Sequence[str], at: int, language: str) -> Found:
    """Read what no delimiter encloses."""
    line = lines[at].strip()
    if title := _HEADING.match(line):
        return heading(_marks(title[2]), len(title[1])), at + 1
    if item := _ITEM.match(line):
        return _item(lines, at, item)
    if term := _TERM.match(line):
        return _defined(lines, at, term)
    end = _end(lines, at + 1)
    if language or lines[at].startswith(" "):
        return code(lines[at:end], language), end
    text = " ".join(one.strip() for one in lines[at:end])
    return paragraph([_marks(_NOTE.sub("", text, count=1))]), end


def _defined(lines: Sequence[str], at: int, term: re.Match[str]) -> Found:
    """Read a term and what is said of it, which may be indented, or stand below a blank line."""
    text, at = [term[2]] if term[2] else [], at + 1
    if not text:
        at = next((n for n in range(at, len(lines)) if lines[n].strip()), len(lines))
    if at < len(lines) and (text or lines[at].startswith((" ", "\t"))) and not _begins(lines[at]):
        end = _end(lines, at)
        text, at = [*text, *(one.strip() for one in lines[at:end])], end
    return [*paragraph([_marks(term[1])]), *paragraph([_marks(" ".join(text))])], at


def _begins(line: str) -> bool:
    """Say whether a line begins another term, or something else that is no text of its own."""
    return any(each.match(line.strip()) for each in (_TERM, _ATTRIBUTES, _ITEM))


def _item(lines: Sequence[str], at: int, item: re.Match[str]) -> Found:
    end = _end(lines, at + 1)
    text = " ".join([item[2], *(one.strip() for one in lines[at + 1 : end])])
    nested = "  " * (len(item[1]) - 1) if item[1][0] in "*." else ""
    marker = "- " if item[1][0] in "*-" else "1. "
    return as_item(paragraph([_marks(text)]), nested + marker), end


def _delimited(lines: SearchedLines, at: int, mark: str, depth: int, language: str) -> Found:
    is_fence = mark.startswith("```")
    closing = "```" if is_fence else mark
    end = lines.next_equal(closing, at + 1, _DELIMITER.match)
    if end is None:
        return [], at + 1  # it is never closed, so it opens nothing
    body = lines[at + 1 : end]
    if is_fence or mark.startswith(("----", "....")):
        remaining = [
            one for one in body if one.startswith("//") or not _LEFT_OUT.match(one.strip())
        ]
        return code(remaining, mark[3:] if is_fence else language), end + 1
    if mark[0] in _LEFT_OUT_BLOCKS:
        return [], end + 1
    return asciidoc_blocks(body, depth + 1), end + 1


def _end(lines: Sequence[str], at: int) -> int:
    """Return where a paragraph or an item ends."""
    enders = _DELIMITER, _ITEM, _HEADING, _LEFT_OUT
    while at < len(lines):
        line = lines[at].strip()
        if not line or line == "+" or any(pattern.match(line) for pattern in enders):
            break
        at += 1
    return at


def _marks(text: str) -> str:
    text = _ROLE.sub("", _ANCHOR.sub("", text))
    text = _MANUAL.sub(lambda found: f"{found[1]}({found[2]})" if found[2] else found[1], text)
    text = _MACRO.sub(lambda found: found[1].rstrip("^"), text)
    text = _CROSS.sub(lambda found: found[1] or "", text)
    text = text if "`" in text else _VARIABLE.sub("", text)
    return _STRONG.sub(r"**\1**", text.removesuffix(" +"))
