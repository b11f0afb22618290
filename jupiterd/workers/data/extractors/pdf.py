"""The text of a PDF.

Owns which pages are read, and what of them is no text. Doesn't know where the file came from.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.cycle.text_rules.running_heads import without_running_heads
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_PAGES = 5000

_CUT = "\ufffe"
"""Stands where a line ended with a hyphen; PDFium puts the next line right behind it."""


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text` of all pages, without running heads and the numbers of pages.

    Raises:
        UnreadableError: it is encrypted, has too many pages, or no text (a scan has none).
    """
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

    try:
        pages = without_running_heads(list(_pages(PdfDocument(given.data))))
    except PdfiumError as error:
        is_locked = error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY)
        raise UnreadableError(SkipReason.ENCRYPTED if is_locked else SkipReason.BROKEN) from error
    text = "\n\n".join(page for page in pages if page)
    if not text.strip():
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


def _pages(document: Any) -> Iterator[str]:  # noqa: ANN401 - the library has no types
    if len(document) > MAX_PAGES:
        raise UnreadableError(SkipReason.TOO_LARGE)
    for page in document:
        text = page.get_textpage()
        yield text.get_text_range().replace(_CUT, "-\n")
        text.close()
        page.close()
