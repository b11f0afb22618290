"""The notice of a licence above a file's code: the same in every file of a project.

Owns where it ends. Doesn't know languages: a comment is known by how its lines begin. Texts keep
their notices; whoever compares texts by what they share leaves them out.
"""

import re

_COMMENT = re.compile(
    r"[ \t]*(?://|/\*|\*|#(?!include|define|if|pragma|import)|--|;|%|<!--|\"\"\")"
)
_NOTICE = re.compile(r"copyright|licen[cs]e|spdx-|all rights reserved", re.IGNORECASE)
_MAX_LINES = 400


def without_notice(text: str) -> str:
    """Return a text without the notice that it begins with; as it was where there is none."""
    end = last = 0
    is_notice = is_open = False
    for line in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        start, end = end, end + len(line) + 1
        if not is_open and line.strip() and not _COMMENT.match(line):
            break
        is_open = (is_open or "/*" in line) and "*/" not in line
        is_notice = is_notice or _NOTICE.search(line) is not None
        last = end if line.strip() else max(last, start)
    return text[last:] if is_notice and not is_open else text
