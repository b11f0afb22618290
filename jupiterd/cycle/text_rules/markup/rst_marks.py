"""Marks inside a line of reStructuredText, as Markdown: roles, references, literals.

Owns that translation. Doesn't know blocks.
"""

import re
from collections.abc import Callable

_LITERAL = re.compile(r"``(.+?)``(?!`)")
_ROLE = re.compile(r":([\w:+.-]{1,40}):`([^`]{1,500})`|`([^`]{1,500})`:([\w:+-]{1,40}):")
_TITLED = re.compile(r"^(.*?)[ \t\n]*<[^<>]{1,500}>$", re.DOTALL)
_LINK = re.compile(r"`([^`<]{1,500}?)[ \t]*<[^<>`]{1,1000}>`__?")
_REFERENCE = re.compile(r"`([^`]{1,500})`__?")
_NAMED = re.compile(r"(?<![\w`])(\w[\w.-]{0,60})__?(?![\w`])")
_FOOTNOTE = re.compile(r"[ \t]?\[(?:\d{1,4}|#[\w-]{0,60}|\*|[\w.-]{1,60})\]_(?!\w)")
_SUBSTITUTION = re.compile(r"\|(\S(?:[^|\n]{0,80}\S)?)\|_{0,2}(?!\w)")
_ESCAPED = re.compile(r"\\(.)")
_SET_ASIDE = re.compile("\ue002(\\d+)\ue003")
_PRIVATE = re.compile("[\ue002\ue003]")
_PROSE_ROLES = frozenset(
    (  # noqa: SIM905 - a long tuple otherwise
        "ref doc term dfn abbr guilabel menuselection emphasis strong title-reference sub sup "
        "numref any download"
    ).split()
)
_NUMBERED_ROLES = frozenset({"pep", "rfc", "cve", "cwe"})
_LEFT_OUT_ROLES = frozenset({"index", "raw", "octicon", "fa", "cite", "footcite"})


def as_markdown(text: str) -> str:
    """Return a line with its marks as Markdown has them."""
    if not any(map(text.__contains__, "`_|\\")):
        return text
    held: list[str] = []

    def hold(code: str) -> str:
        held.append(f"`{code}`")
        return f"\ue002{len(held) - 1}\ue003"

    text = _LITERAL.sub(lambda found: hold(found[1]), _PRIVATE.sub("", text))
    text = _ROLE.sub(lambda found: _role(found, hold), text)
    text = _REFERENCE.sub(r"\1", _LINK.sub(r"\1", text))
    text = _SUBSTITUTION.sub(r"\1", _FOOTNOTE.sub("", text))
    text = _NAMED.sub(lambda found: found[1] if found[0] != found[1] else found[0], text)
    text = _ESCAPED.sub(r"\1", text).replace("\\ ", "")
    return _SET_ASIDE.sub(lambda found: held[int(found[1])], text)


def _role(found: re.Match[str], hold: Callable[[str], str]) -> str:
    name = (found[1] or found[4]).rpartition(":")[2].lower()
    content = found[2] or found[3]
    if name in _LEFT_OUT_ROLES:
        return ""
    titled = _TITLED.match(content)
    shown = titled[1] if titled and titled[1] else content
    shown = shown.lstrip("!")
    if name in _PROSE_ROLES:
        return shown.strip("/")
    if name in _NUMBERED_ROLES and shown == content:
        return f"{name.upper()} {shown}"
    return hold(shown.rpartition(".")[2] if shown.startswith("~") else shown)
