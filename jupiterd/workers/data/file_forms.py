"""Which reader takes a file, by the ending of its name.

Owns the endings. Doesn't know what the readers do (`extractors`), or tables (`table_rows`).
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

FORMS: Mapping[str, str] = {
    ".html": "html", ".htm": "html", ".xhtml": "html", ".xht": "html", ".pdf": "pdf",
    ".docx": "docx", ".odt": "odt", ".epub": "epub", ".ipynb": "notebook", ".tex": "tex",
}  # fmt: skip


def form_of(name: str) -> str:
    """Return how a file of this name is read, `text` where nothing else is known of it."""
    return FORMS.get(PurePosixPath(name.lower()).suffix, "text")
