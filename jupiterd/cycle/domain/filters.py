"""Which texts are worth training on: the same rules for real and for generated ones.

Owns which rules a text meets, by its kind, and the version of all of them together. Doesn't know
the rules themselves (`prose_rules`, `documentation_rules`, `code_rules`), files, or duplicates
between texts.
"""

from collections.abc import Mapping
from dataclasses import replace

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.templates.short_tasks import ENGLISH
from jupiterd.cycle.templates.tables import TABLE, without_rows
from jupiterd.cycle.templates.texts import TEMPLATES, USUAL
from jupiterd.cycle.text_rules.code_rules import is_vendored, judge_code
from jupiterd.cycle.text_rules.document_kind import (
    MARKDOWN,
    DocumentForm,
    DocumentKind,
    document_kind,
)
from jupiterd.cycle.text_rules.documentation_rules import judge_documentation
from jupiterd.cycle.text_rules.judgement import Judgement
from jupiterd.cycle.text_rules.prose_rules import judge_prose

FILTERS = "filters@5"
"""Name@version of everything that decides on a sample; another one where a verdict may differ."""

_CODE = "code:"
_FUNCTION = "complete_function"
SCORE_DIGITS = 4

Off = frozenset[DropReason]
"""Rules that the domain has put out of force."""

_NONE: Off = frozenset()
_OF_SHORT_ANSWERS: Off = frozenset(
    {
        DropReason.STUB,
        DropReason.TOO_SHORT,
        DropReason.FEW_SENTENCES,
        DropReason.FREQUENT_PHRASE,
        DropReason.REPEATED_PHRASES,
    }
)
"""Rules with bounds for whole pages."""


def is_code(language: str) -> bool:
    """Say whether a domain's language is a programming language."""
    return language.startswith(_CODE)


def form_of(sample: Sample) -> DocumentForm:
    """Return what a sample is; found again where an older version collected it."""
    if sample.document_kind:
        return DocumentForm.parse(sample.document_kind)
    found = document_kind(sample.source_uri, sample.text)
    if sample.kind == "real":
        return found
    # A generator writes Markdown whatever it was given, unless it goes on with a function.
    written = DocumentForm(DocumentKind.DOCUMENTATION, MARKDOWN)
    return found if sample.template == _FUNCTION else written


def judge_sample(sample: Sample, language: str, off: Off = _NONE) -> Judgement:
    """Return why the sample is dropped, or what was measured of it.

    Args:
        sample: any sample; a generated one isn't held to what short answers can't meet.
        language: the domain's: `code:python` takes every text for such code, but what a generator
            wrote about it; with a natural one, such as `en`, the sample's own kind decides.
        off: rules that the domain has put out of force.
    """
    if is_code(language) and sample.template in TEMPLATES:
        language = ENGLISH  # words about code, which a generator wrote
    form = form_of(sample)
    is_source = is_code(language) or form.kind is DocumentKind.CODE
    if is_source and is_vendored(sample.source_uri) and DropReason.VENDORED not in off:
        return Judgement(DropReason.VENDORED)
    if sample.template == TABLE and not is_code(language):
        return judge_prose(without_rows(sample.text), language, off)
    return judge_text(sample.text, language, form, off | _unsuited_to_answers(sample))


def _unsuited_to_answers(sample: Sample) -> Off:
    """Return the rules that don't suit a generated answer: it is as short as it was asked to be.

    It is no page that leads to others; an answer of two sentences is a whole one, and repeats the
    terms of its question. Whether it goes round in circles was asked when it was taken.
    """
    if sample.kind == "real":
        return _NONE
    return _OF_SHORT_ANSWERS if sample.template in USUAL else frozenset({DropReason.STUB})


def judge_text(
    text: str,
    language: str,
    form: DocumentForm = DocumentForm(DocumentKind.PROSE),  # noqa: B008 - it can't be changed
    off: Off = _NONE,
) -> Judgement:
    """Return why a text is dropped, or what was measured of it.

    Args:
        text: the text.
        language: the domain's, as of `judge_sample`.
        form: what the text is.
        off: rules that aren't asked.
    """
    if is_code(language):
        return judge_code(text, language.removeprefix(_CODE), off)
    if form.kind is DocumentKind.CODE:
        return judge_code(text, form.syntax, off)
    if form.kind is DocumentKind.DATA and DropReason.DATA not in off:
        return Judgement(DropReason.DATA)
    if form.markup:
        return judge_documentation(text, form, language, off)
    return judge_prose(text, language, off)


def passed(sample: Sample, scores: Mapping[str, float]) -> Sample:
    """Return the sample with what the filters measured of it."""
    rounded = {name: round(value, SCORE_DIGITS) for name, value in scores.items()}
    return replace(sample, filters=FILTERS, filter_scores=rounded)
