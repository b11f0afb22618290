"""Examples that are records of a terminal: commands, and what programs printed.

Owns how they are told from code, and what is kept: short ones whole, of long ones the commands.
Doesn't know any program.
"""

import re
from dataclasses import replace

from jupiterd.cycle.text_rules.markup.blocks import Block

MAX_RECORD_LINES = 12
"""A longer one is cut down to its commands."""

_SESSIONS = frozenset(
    (  # noqa: SIM905 - a long tuple otherwise
        "ansi console log logs output pycon session shell-session shellsession stderr stdout "
        "terminal"
    ).split()
)
_COLOURED = re.compile(r"\x1b\[[0-9;]*m|<(?:font|span)\b[^<>]{0,200}>")
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\) ?)?(?:[\w.-]+@[\w.-]+[^$#\n]{0,60})?"
    r"(?:\$|%|#|PS [^>\n]{0,80}>|[A-Z]:\\[^>\n]{0,80}>) +\S"
)


def without_record(block: Block) -> list[Block]:
    """Return an example as it is trained on; none where nothing but output is in it."""
    is_coloured = sum(bool(_COLOURED.search(line)) for line in block.lines)
    prompts = [line for line in block.lines if _PROMPT.match(line)]
    is_session = block.language in _SESSIONS or (
        not block.language and bool(prompts) and bool(_PROMPT.match(block.lines[0]))
    )
    is_coloured_record = is_coloured > 1 and (is_session or "\x1b" in "".join(block.lines))
    if is_coloured_record or (is_session and len(block.lines) > MAX_RECORD_LINES):
        return [replace(block, lines=tuple(prompts))] if prompts else []
    return [block]
