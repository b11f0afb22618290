import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.cycle.text_rules.markup.markup_signs import markup_of
from jupiterd.cycle.text_rules.text_form import LineMeaning, text_form


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
        ("pump(1)\n=======\n\nNAME\n----\nIt moves.", "# pump(1)\n\n## NAME\n\nIt moves."),
        (
            "[[x]]\nFLOW\n~~~~\nIt moves.\n\n----\na = 1\n----",
            "### FLOW\n\nIt moves.\n\n```\na = 1\n```",
        ),
        ("Type:\n----------\na = 1\n----------", "Type:\n\n```\na = 1\n```"),
        (
            "-v::\n--verbose::\n\tSay more\n\tof it.\n\nEnd.",
            "-v\n\n--verbose\n\nSay more of it.\n\nEnd.",
        ),
        ("term::\n\n  It is that.", "term\n\nIt is that."),
        ("term::\nIt is that.", "term\n\nIt is that."),
        ("See linkgit:git-add[1] and man:ls[].", "See git-add(1) and ls."),
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


def test_lines_below_a_title_of_two_lines_are_prose_and_come_together() -> None:
    written = "NAME\n----\nA pump moves\nwater up.\n\n----\na = 1\nb = 2\n----"
    assert text_form(written, LineMeaning.ASCIIDOC) == written.replace("moves\n", "moves ")


@pytest.mark.parametrize("mark", ["[Chorus]", "[Illustration]", "[verse]", "[Exit.]", "+", "[a]"])
def test_brackets_in_songs_plays_and_settings_are_no_markup(mark: str) -> None:
    assert markup_of(f"{mark}\nSing.\n\n" * 9) == ""


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("NAME\n----\n\n[verse]\nlink:a[It] moves.\n\n-v::\n\tSay more.\n", "asciidoc"),
        ("NAME\n----\n\nUSES\n----\n\nAn example::\n\n    a = 1\n\nEND\n----\n", "rst"),
    ],
)
def test_titles_of_two_lines_tell_no_markup_alone(text: str, markup: str) -> None:
    assert markup_of(text) == markup
