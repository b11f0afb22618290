"""What tells a markup by a text's content.

Owns the signs and how many are enough. Doesn't know names of files, or what each markup means.
"""

import re
from types import MappingProxyType
from typing import Final

HEAD_CHARS: Final = 20_000
"""More of a text isn't looked at."""

LEAST_SIGNS: Final = 3
"""Fewer tell nothing: plain text has a star or a bracket, too."""

SIGNS: Final = MappingProxyType(
    {
        "markdown": re.compile(
            r"^(?:#{1,6} +\S|(?:```|~~~)|[-*+] +\[[^\]\n]{1,200}\]\([^)\s]{1,500}\))"
            r"|\[[^\]\n]{1,200}\]\((?:https?:|[\w./#-]{1,200}\))",
            re.MULTILINE,
        ),
        "rst": re.compile(
            r"^(?:[ \t]*\.\. +(?:[\w:-]{1,60}::|_[^\n:]{1,200}:)"
            r"|\S[^\n]{0,200}\n([=~^\"'#*+-])\1{3,}[ \t]*$)"
            r"|:\w{1,20}:`[^`\n]{1,200}`|``[^`\n]{1,200}``",
            re.MULTILINE,
        ),
        "asciidoc": re.compile(
            r"^(?:={1,5} +\S|-{4,}$|\S[^\n]{0,200}::\n[ \t]+\S|(?:include|ifn?def|endif)::"
            r"|\[(?:source|listing|NOTE|TIP|WARNING|IMPORTANT)\b[^\]\n]{0,80}\]$"
            r"|:[\w-]{1,40}: )"
            r"|\b(?:link|linkgit|xref):[^\s\[\]]{1,200}\[|<<[\w-]{1,80}[,>]",
            re.MULTILINE,
        ),
        "wiki": re.compile(
            r"^={2,5}[^=\n]{1,200}={2,5}[ \t]*$|\[\[[^\]\n]{1,200}\]\]|'''", re.MULTILINE
        ),
    }
)
"""Markup -> what it alone has."""


def markup_of(text: str) -> str:
    """Return the markup of which the text has most signs; empty where it has too few of any."""
    head = text[:HEAD_CHARS]
    signs = {markup: sum(1 for _ in pattern.finditer(head)) for markup, pattern in SIGNS.items()}
    markup = max(signs, key=signs.__getitem__)
    return markup if signs[markup] >= LEAST_SIGNS else ""
