import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.text_rules.cleaned_markup import cleaned_markup
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind


def cleaned(text: str, markup: str) -> str:
    return cleaned_markup(text, DocumentForm(DocumentKind.DOCUMENTATION, markup)).rstrip("\n")


@pytest.mark.parametrize(
    ("written", "trained_on"),
    [
        ("== Pumps ==\n'''Pumps''' move [[water]].", "## Pumps\n\n**Pumps** move water."),
        ("A [[valve|closed valve]] at [http://a.b the page].", "A closed valve at the page."),
        ("{{Box|a={{b}}|c=d}}\nPumps move water.<ref>A book</ref>", "Pumps move water."),
        ("[[File:a.png|thumb|A picture]]\nPumps move.\n[[Category:Pumps]]", "Pumps move."),
        ("{| class=x\n|-\n| a || b\n|}\nPumps move.", "Pumps move."),
        ("* one thing\n** two things\n# first", "- one thing\n  - two things\n1. first"),
        (
            'Do:\n<syntaxhighlight lang="python">\nx = {1}\n</syntaxhighlight>',
            "Do:\n\n```python\nx = {1}\n```",
        ),
    ],
)
def test_wiki_text_becomes_cleaned_markdown(written: str, trained_on: str) -> None:
    assert cleaned(written, "wiki") == trained_on


@pytest.mark.parametrize(
    ("written", "trained_on"),
    [
        ("= Pumps\n:toc:\n\n== Valves\n\nThey *move*.", "# Pumps\n\n## Valves\n\nThey **move**."),
        (
            "See link:a.html[the page] or https://a.b[it] or <<x,that>>.",
            "See the page or it or that.",
        ),
        ("NOTE: It is hot.", "It is hot."),
        ("[source,python]\n----\nx = 1\n\ny = 2\n----", "```python\nx = 1\n\ny = 2\n```"),
        ("====\nIt is hot.\n====\n\ninclude::a.adoc[]", "It is hot."),
        ("|===\n|a |b\n|===\n\nIt is hot.", "It is hot."),
        ("* one\nmore\n** two\n. first", "- one more\n  - two\n1. first"),
        ("term:: It is that.", "term\n\nIt is that."),
        ("// comment\nimage::a.png[]\nIt is hot.", "It is hot."),
    ],
)
def test_asciidoc_becomes_cleaned_markdown(written: str, trained_on: str) -> None:
    assert cleaned(written, "asciidoc") == trained_on


@given(
    st.text(st.sampled_from("ab .\n=*-|{}[]<>'#:;/+_`"), max_size=300),
    st.sampled_from(["wiki", "asciidoc"]),
)
def test_no_text_is_too_odd(text: str, markup: str) -> None:
    assert isinstance(cleaned(text, markup), str)


@pytest.mark.parametrize("markup", ["markdown", "rst", "asciidoc", "wiki"])
@pytest.mark.parametrize("piece", ["{{", "[[", "<ref>", "{|\n", "====\n", "  - a\n", "`", ":a:`"])
def test_no_text_takes_much_longer_than_its_length(piece: str, markup: str) -> None:
    assert isinstance(cleaned(piece * 5000, markup), str)
