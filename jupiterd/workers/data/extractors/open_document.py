"""Texts of OpenDocument, .odt: written as HTML first, whose blocks are the same.

Owns which of its elements stand for which.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from jupiterd.workers.data.extractors.archive import Archive
from jupiterd.workers.data.extractors.markup import markdown_of
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_DEPTH = 200

_TAGS: Mapping[str, str] = {
    "list": "ul", "list-item": "li", "p": "p", "table": "table", "table-cell": "td",
    "table-row": "tr",
}  # fmt: skip
_BLANKS: Mapping[str, str] = {"line-break": "<br/>", "s": " ", "tab": " "}
_LEFT_OUT = frozenset(
    {"annotation", "bookmark", "frame", "sequence-decls", "table-of-content", "tracked-changes"}
)


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text`.

    Raises:
        UnreadableError: it is none, is encrypted, or blank.
    """
    body = Archive(given.data).tree("content.xml").find(".//{*}body")
    if body is None:
        raise UnreadableError(SkipReason.BROKEN)
    text = markdown_of(_html(body, 0))
    if not text.strip():
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


def _html(element: Any, depth: int) -> str:  # noqa: ANN401 - lxml has no types
    name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
    if not name or name in _LEFT_OUT or depth > MAX_DEPTH:
        return ""
    if name in _BLANKS:
        return _BLANKS[name]
    pieces = [escape(element.text or "")]
    for child in element:
        pieces += (_html(child, depth + 1), escape(child.tail or ""))
    inner = "".join(pieces)
    tag = f"h{_level(element)}" if name == "h" else _TAGS.get(name)
    return f"<{tag}>{inner}</{tag}>" if tag is not None else inner


def _level(heading: Any) -> int:  # noqa: ANN401
    stated = next((value for key, value in heading.items() if key.endswith("outline-level")), "1")
    return min(6, max(1, int(stated))) if stated.isdigit() else 1
