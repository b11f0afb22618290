"""Which documentation is worth training on: pages with headings, links, tables and examples.

Owns what is asked of a page beside the rules for prose, which judge its plain rendering, which of
those don't suit a page that is mostly an example, or a reference. Doesn't know how a markup is
read.

The bounds are ours, chosen on pages of five open projects that were labelled by hand.
"""

from collections.abc import Iterator
from dataclasses import replace

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.judgement import Judgement, Miss, above, below, first_miss
from jupiterd.cycle.text_rules.plain_rendering import Rendering, rendering
from jupiterd.cycle.text_rules.prose_rules import judge_prose, repeated_runs

MIN_EXPLAINED_BYTES = 300
"""Of explanation: a page with less is an index, a redirect or a template."""

MIN_EXPLAINED_BYTES_ALONE = 600
"""The same of a page without an example: short ones only say what other pages are about."""

MIN_EXAMPLE_BYTES = 40
"""Less code is a name, not an example."""

PHRASES_FACTOR = 2
"""How much more than a web page a document may say again in the same words: a reference says like
things of like functions."""

MIN_SENTENCE_WORDS, MIN_TELLING_CHARS = 8, 1000
"""Of a line that reads as a sentence; of all of them, for a document's language to be told by."""

MAX_BRACED = 0.1
"""Of the lines: the synopsis of a command may have braces, which drop a web page."""

_SENTENCE_ENDS = (".", "!", "?", ":", "\u2026", "\u3002", ")", "\u00bb", "\u201d", '"')

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

_JUDGED_HERE = frozenset(
    {DropReason.CURLY_BRACKET, DropReason.FREQUENT_PHRASE, DropReason.REPEATED_PHRASES}
)
"""Rules for prose whose bounds don't suit documentation: it has others here."""

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
    judgement = judge_prose(
        rendered.text, language, off | _unsuited_to_documentation(rendered) | _JUDGED_HERE
    )
    if judgement.reason is not None:
        return judgement
    miss = first_miss(_misses(rendered, language, is_page=form.kind in _PAGES), off)
    if miss:
        return Judgement.of_miss(miss)
    return replace(judgement, prose=_sentences(rendered.text) or rendered.text)


def _sentences(text: str) -> str:
    """Return the lines that end as sentences do, where there are enough to tell a language by.

    A printed page doesn't say which of its lines are code, or the names of things.
    """
    lines = [line for line in text.split("\n") if len(line.split()) >= MIN_SENTENCE_WORDS]
    found = "\n".join(line for line in lines if line.endswith(_SENTENCE_ENDS))
    return found if len(found) >= MIN_TELLING_CHARS else ""


def _misses(rendered: Rendering, language: str, *, is_page: bool) -> Iterator[Miss]:
    lines = rendered.text.split("\n")
    braced = sum("{" in line for line in lines) / len(lines)
    yield from above(DropReason.CURLY_BRACKET, "lines_with_braces", braced, MAX_BRACED)
    yield from _repeating(rendered.text, language)
    if is_page:
        has_example = rendered.code_bytes >= MIN_EXAMPLE_BYTES
        least = MIN_EXPLAINED_BYTES if has_example else MIN_EXPLAINED_BYTES_ALONE
        explained = rendered.explained_bytes
        yield from below(DropReason.STUB, "explained_bytes", explained, least)


def _repeating(text: str, language: str) -> Iterator[Miss]:
    for miss in repeated_runs(text, language):
        limit = PHRASES_FACTOR * miss.limit
        yield from above(miss.reason, miss.measure, miss.value, limit)


def _unsuited_to_documentation(rendered: Rendering) -> frozenset[DropReason]:
    """Return the rules that don't suit a page: documentation with code isn't bad prose."""
    explains = rendered.explained_bytes >= MIN_EXPLAINED_BYTES
    is_mostly_example = rendered.code_bytes >= rendered.explained_bytes
    return _OF_LONG_PROSE if explains and is_mostly_example else frozenset()
