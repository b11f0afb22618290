"""Markdown as blocks, with what sites add to it: admonitions, tabs, includes, JSX, containers.

Owns its syntax between lines. Marks inside a line are `inline_marks`' matter. What only a site's
generator can fill in (includes, template tags, directives for API pages) is no block at all.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from jupiterd.cycle.text_rules.formulas import displayed_formula, is_beginning
from jupiterd.cycle.text_rules.markup.blocks import (
    MAX_DEPTH,
    Block,
    BlockKind,
    Found,
    as_item,
    blocks_between,
    code,
    common_indent,
    heading,
    indent_of,
    indented_below,
    paragraph,
    within,
)
from jupiterd.cycle.text_rules.markup.line_search import SearchedLines
from jupiterd.cycle.text_rules.markup.markdown_html import html_blocks

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^`]*)$")
_INFO = re.compile(r"[\s{.]*([A-Za-z][\w+#-]*)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r"(?:\*[ \t]*){3,}$|(?:-[ \t]*){3,}$|(?:_[ \t]*){3,}$")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])([ \t]+|$)")
_TABLE_RULE = re.compile(r"[ \t|]*:?-+:?[ \t]*(?:[|+][ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?|===[+!]?)[ \t]++(?:[\w -]++)?(?:\"([^\"]*)\")?[ \t]*$")
_SLASHES = re.compile(r"/{3,}[ \t]*+(?:[\w-]++)?[ \t]*+(?:\|[ \t]*(.*))?$")
_API_PAGE = re.compile(r":::[ \t]+[\w$]+(?:[.:/][\w$]+)*[ \t]*$")
_COLONS = re.compile(r":{3,}[ \t]*(?:\{?[\w. -]*\}?(?:\[(.*)\])?)(?:[ \t]+(.*))?$")
_TEMPLATE_LINE = re.compile(
    r"(?:\{\{.*\}\}|\{%.*%\}|\{\*.*\*\}|\{!.*!\}|\{#.*#\}|\{/\*.*\*/\})[ \t.,;]*$"
)
_INCLUDE_LINE = re.compile(
    r"-{1,}8<-{1,}.*$|;-{1,}8<.*$|<<<[ \t]*\S+.*$|@import\b.*$|@include\b.*$|!include\b.*$"
    r"|\[!include\b.*$|@?\[(?:\[_?)?toc_?\]?\]?[ \t]*$|\[\[_toc_\]\]$|\{:.*\}$",
    re.IGNORECASE,
)
_MODULE_LINE = re.compile(
    r"import\b.{0,500}\bfrom[ \t]+(['\"])[^'\"]+\1;?$|import[ \t]+(['\"])[^'\"]+\2;?$"
    r"|export[ \t]+(?:const|default|let)\b[^.]*[={].*$"
)
"""In MDX."""
_DEFINITION = re.compile(r"\[(?!\^)[^\]\n]{1,300}\]:[ \t]*(?:\S.*)?$")
_ABBREVIATION = re.compile(r"\*\[[^\]\n]{1,100}\]:")

_Recogniser = Callable[[SearchedLines, int, str, int], Found | None]
"""Is given all lines, the number of one, that one without its indentation, and the depth."""


def markdown_blocks(lines: Sequence[str], depth: int = 0) -> list[Block]:
    """Return the blocks of a text.

    Args:
        lines: without line ends, tabs as blanks.
        depth: how many lists and quotes it lies in.
    """
    if depth > MAX_DEPTH:
        return paragraph(lines)
    searched = SearchedLines(lines)
    return blocks_between(lines, lambda at: _next(searched, at, lines[at].strip(), depth))


def _next(lines: SearchedLines, at: int, line: str, depth: int) -> Found:
    if line[0] in "ie" and _MODULE_LINE.match(line):
        return [], at + 1
    if indent_of(lines[at]) >= 4 and not _ITEM.match(line):
        end = indented_below(lines, at, 4)
        return code(lines[at:end]), end
    for recognise in _BY_FIRST.get(line[0], ()):
        if (found := recognise(lines, at, line, depth)) is not None:
            return found
    if "|" in line and (table := _table(lines, at)):
        return table
    if line[0].isdigit() and (item := _item(lines, at, line, depth)):
        return item
    return _paragraph(lines, at)


def _paragraph(lines: Sequence[str], at: int) -> Found:
    end = at + 1
    while end < len(lines) and (line := lines[end].strip()) and not _interrupts(line):
        if underline := _SETEXT.match(lines[end]):
            level = 1 if underline[1][0] == "=" else 2
            return heading(" ".join(map(str.strip, lines[at:end])), level), end + 1
        end += 1
    return paragraph(lines[at:end]), end


def _interrupts(line: str) -> bool:
    """Say whether a line can't go on a paragraph."""
    interrupts = _INTERRUPTS.get(line[0])
    return interrupts is not None and interrupts(line)


def _any_of(*patterns: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda line: any(pattern.match(line) for pattern in patterns)


def _fence(lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    opened = _FENCE.match(line)
    if not opened:
        return None
    marks, info = opened[1], _INFO.match(opened[2])
    end = at + 1
    while end < len(lines):
        closing = lines[end].strip()
        if closing.startswith(marks) and not closing.strip(marks[0]):
            break
        end += 1
    body = [one for one in lines[at + 1 : end] if not _is_filled_in(one.strip())]
    indent = min(indent_of(lines[at]), common_indent(body))
    return code([one[indent:] for one in body], info[1].lower() if info else ""), end + 1


def _is_filled_in(line: str) -> bool:
    """Say whether a line of an example stands for text that only the site's generator has."""
    return (
        bool(line)
        and line[0] in "{-;<!"
        and (_TEMPLATE_LINE.match(line) is not None or _INCLUDE_LINE.match(line) is not None)
    )


def _atx(_lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    found = _HEADING.match(line)
    return (heading(found[2] or "", len(found[1])), at + 1) if found else None


def _rule(_lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    return ([], at + 1) if _RULE.match(line) else None


def _item(lines: Sequence[str], at: int, line: str, depth: int) -> Found | None:
    found = _ITEM.match(line)
    if not found:
        return None
    own = indent_of(lines[at])
    width = len(found[1]) + min(max(len(found[2]), 1), 4)
    end = _end_of_item(lines, at + 1, own + min(width, 2))
    body = [line[found.end() :], *(_dedented(one, own + width) for one in lines[at + 1 : end])]
    marker = f"{found[1]} " if found[1][0].isdigit() else "- "
    return as_item(markdown_blocks(body, depth + 1), marker), end


def _end_of_item(lines: Sequence[str], at: int, indent: int) -> int:
    """Return where an item ends; a paragraph of it may go on without being indented."""
    end, is_blank = at, False
    for number in range(at, len(lines)):
        line = lines[number]
        if not line.strip():
            is_blank = True
            continue
        if indent_of(line) < indent and (is_blank or _interrupts(line.strip())):
            break
        if is_blank and indent_of(line) < indent:
            break
        is_blank, end = False, number + 1
    return end


def _dedented(line: str, indent: int) -> str:
    return line[min(indent, indent_of(line)) :]


def _quote(lines: Sequence[str], at: int, _line: str, depth: int) -> Found | None:
    end = at
    while end < len(lines) and lines[end].lstrip().startswith(">"):
        end += 1
    inside = [one.lstrip()[1:].removeprefix(" ") for one in lines[at:end]]
    if inside and re.match(r"\[!\w+\]", inside[0]):
        inside = inside[1:]  # an alert: `> [!NOTE]`
    return within(markdown_blocks(inside, depth + 1), "> ", "> "), end


def _table(lines: Sequence[str], at: int) -> Found | None:
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if "-" not in below or not _TABLE_RULE.match(below) or ("|" not in below and "+" not in below):
        return None
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return [Block(BlockKind.TABLE, tuple(one.strip() for one in lines[at:end]))], end


def _bar(lines: Sequence[str], at: int, _line: str, _depth: int) -> Found | None:
    return _table(lines, at)


def _admonition(lines: Sequence[str], at: int, line: str, depth: int) -> Found | None:
    """Read `!!! note "Title"` and tabs: what is indented below belongs to it."""
    found = _ADMONITION.match(line)
    if not found:
        return None
    own = indent_of(lines[at])
    end = indented_below(lines, at + 1, own + 2)
    body = lines[at + 1 : end]
    indent = common_indent(body)
    title = [] if line[0] == "=" else paragraph([found[1] or ""])
    return [*title, *markdown_blocks([one[indent:] for one in body], depth + 1)], max(end, at + 1)


def _slashes(_lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    found = _SLASHES.match(line)
    return (paragraph([found[1] or ""]), at + 1) if found else None


def _colons(lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    """Read `:::`: a directive that fills in an API page, or the border of a container."""
    if _API_PAGE.match(line) and _is_api_page(lines, at, line):
        return [], indented_below(lines, at + 1, 2)
    found = _COLONS.match(line)
    return (paragraph([found[1] or found[2] or ""]), at + 1) if found else None


def _is_api_page(lines: Sequence[str], at: int, line: str) -> bool:
    """Say whether it names an object: it has dots in it, or options indented below."""
    is_dotted = "." in line
    follows = lines[at + 1] if at + 1 < len(lines) else ""
    return is_dotted or indent_of(follows) >= 2


def _left_out(_lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    patterns = _TEMPLATE_LINE, _INCLUDE_LINE, _DEFINITION, _ABBREVIATION
    return ([], at + 1) if any(pattern.match(line) for pattern in patterns) else None


def _template(lines: Sequence[str], at: int, line: str, _depth: int) -> Found | None:
    """Read a template tag that goes over several lines."""
    closings = {"{{": "}}", "{%": "%}", "{*": "*}", "{/*": "*/}"}
    opening = next((one for one in closings if line.startswith(one)), None)
    if opening is None or closings[opening] in line:
        return None
    for end in range(at + 1, min(len(lines), at + 40)):
        if closings[opening] in lines[end]:
            return [], end + 1
    return None


def _formula(lines: Sequence[str], at: int, _line: str, _depth: int) -> Found | None:
    found = displayed_formula(lines, at)
    return (code(found[0], "math"), found[1]) if found is not None else None


def _html(lines: SearchedLines, at: int, _line: str, _depth: int) -> Found | None:
    return html_blocks(lines, at)


_BY_FIRST: Mapping[str, tuple[_Recogniser, ...]] = MappingProxyType(
    {
        "`": (_fence,),
        "~": (_fence,),
        "#": (_atx,),
        "-": (_left_out, _rule, _item),
        ";": (_left_out,),
        "*": (_rule, _left_out, _item),
        "_": (_rule,),
        "+": (_item,),
        ">": (_quote,),
        "|": (_bar,),
        "!": (_admonition, _left_out),
        "?": (_admonition,),
        "=": (_admonition,),
        "/": (_slashes,),
        ":": (_colons,),
        "{": (_left_out, _template),
        "[": (_left_out,),
        "@": (_left_out,),
        "<": (_left_out, _html),
        "$": (_formula,),
        "\\": (_formula,),
    }
)


_NUMBERED = re.compile(r"1[.)][ \t]")
_MARKED = re.compile(r"(?!-+[ \t]*$)[-*+](?:[ \t]+|$)")
_INTERRUPTS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "`": _any_of(re.compile("```")),
        "~": _any_of(re.compile("~~~")),
        "#": _any_of(_HEADING),
        "-": _any_of(_MARKED),
        "*": _any_of(_MARKED),
        "+": _any_of(_MARKED),
        "1": _any_of(_NUMBERED),
        ">": lambda _line: True,
        "|": lambda _line: True,
        "<": lambda line: html_blocks(SearchedLines([line]), 0) is not None,
        "!": _any_of(_ADMONITION),
        "?": _any_of(_ADMONITION),
        "/": _any_of(_SLASHES),
        ":": _any_of(_COLONS),
        "{": _any_of(_TEMPLATE_LINE),
        "$": is_beginning,
        "\\": is_beginning,
    }
)
"""First character of a line -> whether such a line can't go on a paragraph."""


def lines_of(text: str) -> list[str]:
    """Return a text's lines as the functions here take them."""
    return text.expandtabs(4).splitlines()
