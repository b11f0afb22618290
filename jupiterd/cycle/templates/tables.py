"""Markdown tables in a text.

Owns what a row is. Doesn't know templates or filters.
"""

import re
from typing import Final

TABLE: Final = "table"
"""The template whose samples hold one."""

_ROW: Final = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)
_RULE_ROW: Final = re.compile(r"^[ \t]*\|[ \t|:-]+\|[ \t]*\n?", re.MULTILINE)


def count_rows(text: str) -> int:
    """Return how many rows there are, the header included and the rule below it not."""
    return len(_ROW.findall(_RULE_ROW.sub("", text)))


def without_rows(text: str) -> str:
    """Return the text with the cells' words alone: rules about prose count marks as no words."""
    return _ROW.sub(lambda row: row[0].replace("|", " "), _RULE_ROW.sub("", text))
