"""What a doctor's document says, as people read it; jupiterd and jupiterctl show the same.

Owns the lines. Pure. Doesn't know how anything was found.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jupiterd.formats import plain

COLUMNS: Final = 80
_INDENT: Final = 22
"""Where the text begins: behind a verdict and the name of a check."""
NOT_HERE: Final = "not here"

Row = Mapping[str, Any]


def finding_lines(document: Row) -> list[str]:
    """Return a line or more for each finding, what isn't here in one, and what it comes to."""
    findings: Sequence[Row] = document["findings"]
    absent = [plain(row["check"]) for row in findings if row["status"] == NOT_HERE]
    present = [row for row in findings if row["status"] != NOT_HERE]
    return [
        *(line for row in present for line in _lines(row)),
        *(_wrapped(NOT_HERE, "", ", ".join(dict.fromkeys(absent))) if absent else []),
        "",
        summary(document),
    ]


def summary(document: Row) -> str:
    """Return what it all comes to."""
    failing, warned = document["counts"]["fail"], document["counts"]["warn"]
    parts = [
        f"{count} {word}"
        for count, word in ((failing, _plural(failing, "fails", "fail")), (warned, "to look at"))
        if count
    ]
    return ", ".join(parts) or "all is well"


def _lines(row: Row) -> list[str]:
    fix = plain(row["fix"]) if row["fix"] else ""
    # Commands are to be copied: they aren't broken.
    return [
        *_wrapped(plain(row["status"]), plain(row["check"]), plain(row["why"])),
        *([" " * _INDENT + f"fix: {fix}"] if fix else []),
    ]


def _wrapped(status: str, check: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, COLUMNS - _INDENT, break_long_words=False, break_on_hyphens=False)
    beginning = f"{status:8} {check:12} ".ljust(_INDENT)
    return [(beginning if first else " " * _INDENT) + line for first, line in _marked(lines)]


def _marked(lines: Sequence[str]) -> list[tuple[bool, str]]:
    return [(index == 0, line) for index, line in enumerate(lines or [""])]


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
