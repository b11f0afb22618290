"""The markup of a text cleaned, within the limits that readers of strangers' documents have.

Owns the form in which a text and what it is are handed over. Doesn't know what is left out of it.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cycle.text_rules.document_kind import DocumentForm
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.workers.data.extractors.raw_document import RawDocument


def order(text: str, form: DocumentForm) -> bytes:
    """Return what `read` is given: what it is on the first line, then the text."""
    return f"{form}\n{text}".encode()


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text`, cleaned."""
    form, _, text = given.data.decode().partition("\n")
    return {"text": cleaned_markup(text, DocumentForm.parse(form))}
