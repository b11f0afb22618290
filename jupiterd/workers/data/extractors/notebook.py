"""Notebooks of Jupyter: text, and code in fences; what the code printed or drew is left out.

Owns their form, of version 3 and 4.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

_PICTURE = re.compile(r"!\[[^\]]*\]\((?:data|attachment):[^)]*\)|<img\b[^>]*\bsrc=.data:[^>]*>")


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text`.

    Raises:
        UnreadableError: it is no notebook, or blank.
    """
    try:
        found: Any = json.loads(decoded(given.data))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(SkipReason.BROKEN) from error
    if not isinstance(found, dict):
        raise UnreadableError(SkipReason.BROKEN)
    notebook = cast("dict[str, Any]", found)
    language = _language_of(notebook)
    blocks = (_block(cell, language) for cell in _cells(notebook))
    text = "\n\n".join(block for block in blocks if block)
    if not text:
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


def _cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    sheets: Any = [notebook, *_listed(notebook.get("worksheets"))]  # version 3 had several
    for sheet in sheets:
        if isinstance(sheet, dict):
            cells = _listed(cast("dict[str, Any]", sheet).get("cells"))
            yield from (cell for cell in cells if isinstance(cell, dict))


def _listed(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _block(cell: Mapping[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = "".join(map(str, _listed(source))) if isinstance(source, list) else str(source)
    kind = cell.get("cell_type")
    if kind == "code" and text.strip():
        fence = "````" if "```" in text else "```"
        return f"{fence}{language}\n{text.strip(chr(10)).rstrip()}\n{fence}"
    if kind == "heading":
        return f"# {text.strip()}"
    return _PICTURE.sub("", text).strip() if kind == "markdown" else ""


def _language_of(notebook: Mapping[str, Any]) -> str:
    metadata: Any = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    fields = cast("dict[str, Any]", metadata)
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        stated: Any = fields.get(part)
        name = cast("dict[str, Any]", stated).get(key) if isinstance(stated, dict) else None
        if isinstance(name, str) and re.fullmatch(r"[\w+#-]{1,20}", name):
            return name.lower()
    return ""
