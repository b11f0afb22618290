"""Word's documents, .docx.

Owns the way to mammoth, which knows styles, lists, tables and footnotes.
"""

import io
from collections.abc import Mapping
from typing import Any

from jupiterd.workers.data.extractors.archive import Archive
from jupiterd.workers.data.extractors.markup import markdown_of
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text`, without pictures.

    Raises:
        UnreadableError: it is none, or blank.
    """
    import mammoth  # pyright: ignore[reportMissingTypeStubs]

    Archive(given.data).refuse_entities()
    library: Any = mammoth
    no_picture = library.images.img_element(_no_picture)
    found = library.convert_to_html(io.BytesIO(given.data), convert_image=no_picture)
    text = markdown_of(str(found.value))
    if not text.strip():
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


def _no_picture(_image: object) -> Mapping[str, str]:
    return {"src": ""}
