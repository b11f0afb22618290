"""What becomes of a document's text before it is stored: its kind is told, its markup cleaned.

Owns that step, which every collected text passes, those of older versions too. Doesn't know rules.
"""

from dataclasses import replace

from jupiterd.cycle.filters import is_code
from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.cycle.text_rules.cleaned_markup import cleaned_markup
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind, document_kind


def with_kind(sample: Sample, name: str) -> Sample:
    """Return a collected sample with its kind, its markup cleaned; unchanged where it has one.

    Args:
        sample: as it was read, without secrets.
        name: what tells its kind; empty where its content alone does.
    """
    if sample.document_kind:
        return sample
    form = _form(name, sample)
    text = cleaned_markup(sample.text, form)
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
