"""Which reader takes a file, by the ending of its name.

Owns the endings. Doesn't know what the readers do (`extractors`), or tables (`table_rows`).
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

FORMS: Mapping[str, str] = {
    ".html": "html", ".htm": "html", ".xhtml": "html", ".xht": "html", ".pdf": "pdf",
    ".docx": "docx", ".odt": "odt", ".epub": "epub", ".ipynb": "notebook", ".tex": "tex",
}  # fmt: skip

_SECTION = re.compile(r"\.([1-9][a-z]{0,4}|man|mdoc|roff)")
"""Of a page of a manual, such as `.1` or `.3pm`; its content tells whether it's one (`man`)."""


def form_of(name: str) -> str:
    """Return how a file of this name is read, `text` where nothing else is known of it."""
    ending = PurePosixPath(name.lower()).suffix
    return "man" if _SECTION.fullmatch(ending) else FORMS.get(ending, "text")
