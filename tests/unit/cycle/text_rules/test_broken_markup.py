"""Broken markup costs no more than its length: each part of it is looked at once."""

import time
from collections.abc import Callable

import pytest

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.workers.data.extractors.markup import markdown_of

FEW, MANY = 1_000, 8_000
MAX_TIMES = 24.0
"""For eight times as much: eight where each part is looked at once, sixty-four where all are looked
at for each; measured before: 40 to 60."""


def cleaned_as(markup: str) -> Callable[[str], str]:
    form = DocumentForm(DocumentKind.DOCUMENTATION, markup)
    return lambda text: cleaned_markup(text, form)


def processor_s(work: Callable[[str], str], text: str) -> float:
    began_s = time.process_time()
    work(text)
    return time.process_time() - began_s


@pytest.mark.parametrize(
    ("work", "begun"),
    [
        (cleaned_as("markdown"), "<pre>\nword\n\n"),
        (cleaned_as("markdown"), "<table>\nword\n\n"),
        (cleaned_as("markdown"), "<!--\nword\n\n"),
        (cleaned_as("markdown"), "<nav>\nword\n\n"),
        (cleaned_as("asciidoc"), "```rust\nword\n\n"),
        (markdown_of, "<li>word</li>"),
    ],
)
def test_what_is_never_closed_is_looked_for_once(work: Callable[[str], str], begun: str) -> None:
    start = "<ol>" if begun.startswith("<li>") else ""
    few = min(processor_s(work, start + begun * FEW) for _ in range(3))
    many = min(processor_s(work, start + begun * MANY) for _ in range(2))
    assert many < MAX_TIMES * few, (few, many)


def test_what_is_closed_is_still_found_behind_what_is_not() -> None:
    text = "<pre>\na\n</pre>\n\nPumps move.\n\n<!-- x -->\n\n<PRE>\nb\n</PRE>\n\n<pre>\nWords.\n"
    assert cleaned_as("markdown")(text) == "```\na\n```\n\nPumps move.\n\n```\nb\n```\n\nWords.\n"


def test_items_of_a_long_list_have_their_numbers() -> None:
    markup = "<ol>" + "<li>One.<ol><li>Inner.</li></ol></li>" * 3 + "</ol>"
    assert markdown_of(markup).split("\n") == [
        "1. One.", "   1. Inner.", "2. One.", "   1. Inner.", "3. One.", "   1. Inner.",
    ]  # fmt: skip
