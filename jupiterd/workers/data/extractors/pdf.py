"""The text of a PDF.

Owns which pages are read. Doesn't know where the file came from.
"""

import io
from collections.abc import Mapping
from typing import Any

from jupiterd.workers.data.extractors.given import Given
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_PAGES = 5000


def read(given: Given) -> Mapping[str, Any]:
    """Return the `text` of all pages.

    Raises:
        UnreadableError: it is encrypted, has too many pages, or no text (a scan has none).
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    try:
        pages = PdfReader(io.BytesIO(given.data), strict=False).pages
        if len(pages) > MAX_PAGES:
            raise UnreadableError(SkipReason.TOO_LARGE)
        text = "\n\n".join(page.extract_text().strip() for page in pages)
    except (FileNotDecryptedError, DependencyError) as error:
        raise UnreadableError(SkipReason.ENCRYPTED) from error
    except PyPdfError as error:
        raise UnreadableError(SkipReason.BROKEN) from error
    if not text.strip():
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}
