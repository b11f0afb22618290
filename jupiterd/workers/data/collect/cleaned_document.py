"""What becomes of a document's text before it is stored: its kind is told, its markup cleaned.

Owns that step, which every collected text passes, those of older versions too. Doesn't know rules.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind, document_kind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.workers.data.extract.extraction import Extracted
from jupiterd.workers.data.extract.extraction_process import CLEANING
from jupiterd.workers.data.extractors.cleaning import order
from jupiterd.workers.data.skips import UnreadableError

MOST_CLEANED_HERE = 1 << 14
"""Characters: so many take milliseconds, whatever is in them; more are cleaned within limits."""

Cleaning = Callable[[str, DocumentForm], str]


class LimitedExtraction(Protocol):
    """Reads documents within limits."""

    def read(self, form: str, data: bytes) -> Extracted:
        """Return what one says; raises UnreadableError."""
        ...


def within_limits(extraction: LimitedExtraction) -> Cleaning:
    """Return how markup is cleaned that may be anything: at most as long as a document is read.

    What it returns raises UnreadableError where that isn't enough.
    """

    def clean(text: str, form: DocumentForm) -> str:
        if len(text) <= MOST_CLEANED_HERE or not form.markup:
            return cleaned_markup(text, form)
        return extraction.read(CLEANING, order(text, form)).text

    return clean


def once(clean: Cleaning) -> Cleaning:
    """Return a cleaning that does each text once, and gives it up once, however often it's asked.

    All that it returned stays in memory.
    """
    known: dict[tuple[str, DocumentForm], str | UnreadableError] = {}

    def clean_once(text: str, form: DocumentForm) -> str:
        key = (text, form)
        if key not in known:
            try:
                known[key] = clean(text, form)
            except UnreadableError as error:
                known[key] = error
        found = known[key]
        if isinstance(found, UnreadableError):
            raise found
        return found

    return clean_once


def with_kind(sample: Sample, name: str, clean: Cleaning = cleaned_markup) -> Sample:
    """Return a collected sample with its kind, its markup cleaned; unchanged where it has one.

    Args:
        sample: as it was read, without secrets.
        name: what tells its kind; empty where its content alone does.
        clean: cleans its markup.

    Raises:
        UnreadableError: `clean` gave it up.
    """
    if sample.document_kind:
        return sample
    form = _form(name, sample)
    text = clean(sample.text, form)
    # Whatever its markup was: it is Markdown now.
    kind = str(form.kind) if form.markup else str(form)
    return replace(sample, id=text_hash(text), text=text, document_kind=kind)


def _form(name: str, sample: Sample) -> DocumentForm:
    """Return what it is; what a reader took out of a page isn't code, whatever its address says.

    Rows of a domain of code are such code: by its content alone, comments look like headings.
    """
    if not name and is_code(sample.language):
        return DocumentForm.parse(sample.language)
    form = document_kind(name, sample.text)
    is_source = form.kind in (DocumentKind.CODE, DocumentKind.DATA)
    return DocumentForm(DocumentKind.WEB) if sample.extractor and is_source else form
