"""Lines of reStructuredText and AsciiDoc put together where these markups put them together.

Owns which lines are one paragraph to them: such as follow each other at one indentation. Titles,
directives, tables, literal blocks and lists keep their lines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.text_rules.markup.asciidoc_titles import title_level
from jupiterd.cycle.text_rules.word_breaks import TextWords, before_next


@dataclass(frozen=True)
class LineMarkup:
    """How a markup marks what isn't a paragraph."""

    apart: re.Pattern[str]
    """A line that is never joined to another one."""
    item: re.Pattern[str]
    """The first line of an item, whose further lines are indented."""
    opens: re.Pattern[str]
    """A line behind which everything that is indented more stays as it is."""
    fence: re.Pattern[str] | None = None
    """A line that begins and ends what stays as it is."""


RST = LineMarkup(
    apart=re.compile(
        r"\s*(?:\.\.(?:\s|$)|:[\w .-]+:(?:\s|$)|\|\s|[+|][-=+|]|>>>|([=\-`:'\"~^_*+#<>.])\1{2,}\s*$"
        r"|=+(?:\s+=+)+\s*$|__\s)"
    ),
    item=re.compile(r"\s*(?:[-*+\u2022]|\(?(?:\d{1,3}|[a-zA-Z#])[.)])\s+"),
    opens=re.compile(r"(?:^\s*\.\.\s+[\w:-]+::|^\s*\.\.\s|::\s*$)"),
)
ASCIIDOC = LineMarkup(
    apart=re.compile(
        r"(?:=+ |:[\w!-]+:|\[\[?[^\]]*\]\]?$|\.\S|//|\||\+$|[-.=*_+/]{4,}\s*$|\w+::\S*\[)"
    ),
    item=re.compile(r"\s*(?:[-*.]{1,5}|\d{1,3}\.|<\d+>)\s+|.*::(?:\s|$)"),
    opens=re.compile(r"(?!)"),
    fence=re.compile(r"(?:-{4,}|\.{4,}|\+{4,}|/{4,}|\|===|```)\s*$"),
)
_PROSE_DIRECTIVE = re.compile(
    r"\s*\.\.\s+(?:note|warning|tip|hint|important|attention|caution|danger|seealso|admonition|"
    r"topic|versionadded|versionchanged|deprecated|\w*:?(?:function|class|method|attribute|data|"
    r"exception|module|option))::"
)


def unwrapped_lines(text: str, markup: LineMarkup) -> str:
    """Return the text with the lines of each paragraph joined.

    Args:
        text: without blanks at the ends of its lines.
        markup: what it is written in.
    """
    lines = text.split("\n")
    literal = _literal(lines, markup)
    vocabulary = TextWords.of(text)
    pieces: list[str] = []
    is_joined = False
    for number, line in enumerate(lines):
        shown = line.lstrip() if is_joined else line
        following = lines[number + 1] if number + 1 < len(lines) else ""
        is_joined = not (literal[number] or literal[min(number + 1, len(lines) - 1)]) and _goes_on(
            line, following, lines[number + 2 : number + 3], markup
        )
        pieces.append(
            before_next(shown, following.lstrip(), vocabulary) if is_joined else f"{shown}\n"
        )
    return "".join(pieces)[:-1]


def _goes_on(line: str, following: str, behind: Sequence[str], markup: LineMarkup) -> bool:
    """Say whether a paragraph goes on in the following line."""
    if not line or not following or markup.apart.match(line) or markup.apart.match(following):
        return False
    if markup.item.match(following) or (behind and _is_underline(behind[0], following)):
        return False
    indentation, next_one = _indentation(line), _indentation(following)
    if found := markup.item.match(line):
        return next_one > indentation or (markup.fence is not None and bool(found.group().strip()))
    return indentation == next_one


def _is_underline(line: str, title: str) -> bool:
    return len(line) >= len(title) and len(set(line)) == 1 and not line[0].isalnum()


def _literal(lines: Sequence[str], markup: LineMarkup) -> list[bool]:
    """Say of each line whether it lies in what stays as it is."""
    found: list[bool] = []
    least = -1
    is_fenced = False
    for number, line in enumerate(lines):
        if markup.fence is not None and markup.fence.match(line):
            is_title = not is_fenced and number > 0 and title_level(lines, number - 1) > 0
            is_fenced ^= not is_title
            found.append(True)
            continue
        if line and least >= 0 and _indentation(line) <= least:
            least = -1
        found.append(is_fenced or least >= 0)
        if line and least < 0 and markup.opens.search(line) and not _PROSE_DIRECTIVE.match(line):
            least = _indentation(line)
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
