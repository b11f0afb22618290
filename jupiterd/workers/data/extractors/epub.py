"""E-books, .epub: pages of XHTML, in the order of the book's spine.

Owns how the pages are found. Books with copy protection are left out.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from jupiterd.workers.data.extractors.archive import Archive
from jupiterd.workers.data.extractors.markup import markdown_of
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_PAGES = 5000


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text` of all pages.

    Raises:
        UnreadableError: it is none, is encrypted, or has no text.
    """
    book = Archive(given.data)
    if "META-INF/rights.xml" in book.names:
        raise UnreadableError(SkipReason.ENCRYPTED)
    names = list(_pages(book))
    if len(names) > MAX_PAGES:
        raise UnreadableError(SkipReason.TOO_LARGE)
    pages = (markdown_of(book.read(name)) for name in names if name in book.names)
    text = "\n\n".join(page for page in pages if page.strip())
    if not text:
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


def _pages(book: Archive) -> Iterator[str]:
    """Yield the names of the pages, without the table of contents."""
    root = book.tree("META-INF/container.xml").find(".//{*}rootfile")
    package = str(root.get("full-path") or "") if root is not None else ""
    tree = book.tree(package)
    folder = posixpath.dirname(package)
    items = {item.get("id"): item for item in tree.iterfind(".//{*}manifest/{*}item")}
    for reference in tree.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and "nav" not in str(item.get("properties") or "").split():
            place = posixpath.join(folder, unquote(str(item.get("href") or "")))
            yield posixpath.normpath(place)
