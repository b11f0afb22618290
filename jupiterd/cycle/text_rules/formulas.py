"""Formulas in TeX: inside a line of Markdown, and on lines of their own.

Owns where they begin and end, and the one word that stands for a formula where prose is judged.
Doesn't know the other marks of Markdown. A formula is trained on as it was written: its braces are
no template, its brackets no link, its underscores no emphasis.
"""

import re
from collections.abc import Sequence

MAX_LINES = 80
"""What goes on for longer is no formula that somebody forgot to end."""

_INLINE = re.compile(
    r"(?<![\\$\w])(?:\$\$(?P<two>[^$\n]{1,2000})\$\$"
    r"|\$(?P<one>[^\s$](?:[^$\n]{0,1000}?[^\s$\\])?)\$"
    r"|\\\((?P<round>[^\n]{1,1000}?)\\\)|\\\[(?P<square>[^\n]{1,2000}?)\\\])(?![\w$])"
)
_SIGNS = re.compile(r"[\\^_={}<>+*/|]")
_SHORT_CHARS = 3
"""So short, `$n$` is a formula without any sign of one."""

_ENVIRONMENT = r"(?:equation|align|aligned|alignat|gather|multline|eqnarray|displaymath|math)\*?"
_OPENING = re.compile(rf"(\$\$|\\\[|\\begin\{{({_ENVIRONMENT})\}})")
_LABEL_CHARS = 60
"""Behind a formula, on its last line: its number, its name, a full stop."""

_COMMAND = re.compile(r"\\[A-Za-z]+|[^A-Za-z0-9\\]+|\\")
_WORD_CHARS = 8
_NAMELESS = "x"


def with_formulas_set_aside(text: str, set_aside: list[str]) -> str:
    """Return the line with a number in the place of each formula, as code is held.

    set_aside: takes the formulas
    """

    def hold(found: re.Match[str]) -> str:
        if not _is_formula(_body(found)):
            return found[0]
        set_aside.append(found[0])
        return f"\ue000{len(set_aside) - 1}\ue001"

    return _INLINE.sub(hold, text) if "$" in text or "\\" in text else text


def with_words_for_formulas(text: str) -> str:
    """Return the line with one word in the place of each formula."""

    def worded(found: re.Match[str]) -> str:
        body = _body(found)
        if not _is_formula(body):
            return found[0]
        return _COMMAND.sub("", body)[:_WORD_CHARS] or _NAMELESS

    return _INLINE.sub(worded, text) if "$" in text or "\\" in text else text


def displayed_formula(lines: Sequence[str], at: int) -> tuple[list[str], int] | None:
    """Return the lines of a formula that begins on a line, and the line's number that follows it.

    None: there is none, or it never ends.
    """
    first = lines[at].strip()
    opened = _OPENING.match(first)
    if opened is None:
        return None
    closing = _closing_of(opened)
    body: list[str] = []
    rest = first[opened.end() :]
    for number in range(at, min(len(lines), at + MAX_LINES)):
        line = rest if number == at else lines[number].strip()
        inside, found, behind = line.partition(closing)
        body.append(inside.strip())
        if found:
            is_alone = len(behind.strip()) <= _LABEL_CHARS
            return (_whole(opened, closing, body), number + 1) if is_alone else None
    return None


def is_beginning(line: str) -> bool:
    """Say whether a displayed formula may begin on a line."""
    return _OPENING.match(line) is not None


def _closing_of(opened: re.Match[str]) -> str:
    if opened[2]:
        return rf"\end{{{opened[2]}}}"
    return "$$" if opened[1] == "$$" else r"\]"


def _whole(opened: re.Match[str], closing: str, body: Sequence[str]) -> list[str]:
    """Return a formula's lines; one in an environment keeps it, for it says how lines stand."""
    lines = [line for line in body if line]
    return [opened[1], *lines, closing] if opened[2] else lines


def _body(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group is not None)


def _is_formula(body: str) -> bool:
    return len(body.strip()) <= _SHORT_CHARS or _SIGNS.search(body) is not None
