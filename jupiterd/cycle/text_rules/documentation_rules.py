"""Which documentation is worth training on: pages with headings, links, tables and examples.

Owns what is asked of a page beside the rules for prose, which judge its plain rendering, and which
of those don't suit a page that is mostly an example. Doesn't know how a markup is read.

The bounds are ours, chosen on pages of five open projects that were labelled by hand.
"""

from jupiterd.cycle.drop_reason import DropReason
from jupiterd.cycle.prose_rules import judge_prose
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.judgement import Judgement
from jupiterd.cycle.text_rules.plain_rendering import Rendering, rendering

MIN_EXPLAINED_BYTES = 300
"""Of explanation: a page with less is an index, a redirect or a template."""

MIN_EXPLAINED_BYTES_ALONE = 600
"""The same of a page without an example: short ones only say what other pages are about."""

MIN_EXAMPLE_BYTES = 40
"""Less code is a name, not an example."""

_OF_LONG_PROSE = frozenset(
    {
        DropReason.TOO_SHORT,
        DropReason.FEW_SENTENCES,
        DropReason.NO_SENTENCES,
        DropReason.SHORT_LINES,
        DropReason.LIST,
    }
)
"""Rules that ask for much prose: a page that is mostly an example has little, and may."""

_PAGES = frozenset({DocumentKind.DOCUMENTATION, DocumentKind.WEB})
"""Parts of a site, some of which only lead to others; other documents stand for themselves."""


def judge_documentation(
    text: str,
    form: DocumentForm,
    language: str,
    off: frozenset[DropReason] = frozenset(),
) -> Judgement:
    """Return why a document in a markup is dropped, or what was measured of it.

    Args:
        text: the document.
        form: what it is; its markup says how it is read.
        language: natural, such as `en`.
        off: rules that aren't asked.
    """
    rendered = rendering(text, form, language)
    judgement = judge_prose(rendered.text, language, off | _not_asked(rendered))
    if judgement.reason is not None or DropReason.STUB in off or form.kind not in _PAGES:
        return judgement
    has_example = rendered.code_bytes >= MIN_EXAMPLE_BYTES
    least = MIN_EXPLAINED_BYTES if has_example else MIN_EXPLAINED_BYTES_ALONE
    if rendered.explained_bytes < least:
        return Judgement(DropReason.STUB, {}, "explained_bytes", rendered.explained_bytes, least)
    return judgement


def _not_asked(rendered: Rendering) -> frozenset[DropReason]:
    """Return the rules that don't suit a page: documentation with code isn't bad prose."""
    explains = rendered.explained_bytes >= MIN_EXPLAINED_BYTES
    is_mostly_example = rendered.code_bytes >= rendered.explained_bytes
    return _OF_LONG_PROSE if explains and is_mostly_example else frozenset()
