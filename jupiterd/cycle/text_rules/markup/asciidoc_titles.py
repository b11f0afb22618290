"""AsciiDoc's titles of two lines: the words, and below them signs of about the same length.

Owns what is one. A row of four signs opens an example elsewhere, so whoever reads AsciiDoc asks
here first. Doesn't know what becomes of a title.

Source: https://docs.asciidoctor.org/asciidoctor/latest/migrate/asciidoc-py/#setext-style-section-titles
"""

import re
from collections.abc import Sequence
from typing import Final

_UNDERLINE: Final = re.compile(r"([=\-~^+])\1+[ \t]*$")
_LEVELS: Final = "=-~^+"
_NO_TITLE: Final = re.compile(r"\s|\[.*\]\s*$|\.\w|//|\||:!?[\w-]+!?:|\w+::\S*\[")
_AT_A_START: Final = re.compile(r"\s*$|\[.*\]\s*$|\.\w|//|:!?[\w-]+!?:|\+\s*$")
"""What may stand directly above: a blank line, or one that says something of the title."""

_NEAR_CHARS: Final = 1
"""How much the lengths of the two lines may differ."""


def title_level(lines: Sequence[str], at: int) -> int:
    """Return the level of the title whose words stand at a line, from 1; 0 where none does.

    The line must lie outside of examples.
    """
    below = lines[at + 1] if at + 1 < len(lines) else ""
    line, underline = lines[at].rstrip(), _UNDERLINE.match(below)
    if underline is None or not any(map(str.isalnum, line)) or _NO_TITLE.match(line):
        return 0
    is_near = abs(len(line) - len(below.rstrip())) <= _NEAR_CHARS
    is_at_start = at == 0 or _AT_A_START.match(lines[at - 1]) is not None
    return _LEVELS.index(underline[1]) + 1 if is_near and is_at_start else 0
