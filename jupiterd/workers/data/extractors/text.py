"""Plain text, markup and code: what needs no parser, in whatever encoding.

Owns that alone; `layouts` says what their lines mean.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text`.

    Raises:
        UnreadableError: it is none, or blank.
    """
    text = decoded(given.data, given.charset, given.language)
    if not text.strip():
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}
