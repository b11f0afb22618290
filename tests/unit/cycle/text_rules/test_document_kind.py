import pytest

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind, document_kind

MARKDOWN = "# Pumps\n\nSee [the manual](manual.md).\n\n```sh\npump --on\n```\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("folder:docs/guide/intro.md", "documentation:markdown"),
        ("guide.MDX", "documentation:markdown"),
        ("_sources/library/intro.rst.txt", "documentation:rst"),
        ("manual.adoc", "documentation:asciidoc"),
        ("Main Page.mediawiki", "documentation:wiki"),
        ("src/pump.py", "code:python"),
        ("src/pump.rs", "code:rust"),
        ("include/pump.hpp", "code:c++"),
        ("Makefile", "code:make"),
        ("CMakeLists.txt", "code:cmake"),
        ("page.html", "web"),
        ("https://example.org/pumps", "web"),
        ("https://example.rs", "web"),
        ("https://example.org/pumps.rs#7", "code:rust"),
        ("https://example.org/pumps/?sort=.py", "web"),
        ("analysis.ipynb", "notebook"),
        ("thesis.pdf", "office"),
        ("letter.docx", "office"),
        ("rows.csv", "table"),
        ("openapi.yaml", "data"),
        ("notes.md.gz", "documentation:markdown"),
        ("notes.txt", "prose"),
        ("README", "prose"),
    ],
)
def test_a_name_tells_the_kind(name: str, kind: str) -> None:
    assert str(document_kind(name, "Pumps move water.")) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (MARKDOWN, "documentation:markdown"),
        ("Pumps\n=====\n\n.. note:: See :ref:`valves`.\n\nUse ``on``.\n", "documentation:rst"),
        ("== Pumps ==\n'''Pumps''' move [[water]].\n=== Valves ===\n", "documentation:wiki"),
        ("= Pumps\n:author: A\n\n== Valves\n\n----\non\n----\n", "documentation:asciidoc"),
        ("#!/usr/bin/env python3\nprint(1)\n", "code:python"),
        ("#! /bin/sh -e\nls\n", "code:bash"),
        ("Pumps move water. They are old.\n", "prose"),
        ("", "prose"),
    ],
)
def test_content_tells_the_kind_where_there_is_no_name(text: str, kind: str) -> None:
    assert str(document_kind("", text)) == kind


@pytest.mark.parametrize("written", ["prose", "code:c++", "documentation:rst", "office"])
def test_a_written_form_is_read_back(written: str) -> None:
    assert str(DocumentForm.parse(written)) == written


def test_a_kind_of_a_newer_version_is_read_as_prose() -> None:
    assert DocumentForm.parse("hologram:3d") == DocumentForm(DocumentKind.PROSE)


def test_a_sample_of_an_older_version_has_no_kind() -> None:
    line = (
        '{"id":"a","text":"t","kind":"real","depth":0,"parents":[],"cluster_id":"c",'
        '"source_uri":"u","revision":"","license":"MIT","collector":"folder@2","fetched_at":""}'
    )
    assert Sample.from_json(line).document_kind == ""
