"""Office documents, books, notebooks and TeX become Markdown; what means harm is left out."""

import io
import json
import zipfile
from contextlib import suppress

import pytest

from jupiterd.workers.data.extract.extraction import ExtractionLimits, Extractor
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.tables.file_forms import form_of

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"


@pytest.fixture(scope="module")
def shared():
    with Extractor() as extractor:
        yield extractor


def archive(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


def docx(body, head=""):
    return archive({
        "[Content_Types].xml": f'<Types xmlns="{TYPES}"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="r" Type="{DOCUMENT}" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<?xml version="1.0"?>{head}<w:document xmlns:w="{W}"><w:body>{body}'
        "</w:body></w:document>",
        "word/styles.xml": f'<w:styles xmlns:w="{W}"><w:style w:type="paragraph" w:styleId="H1">'
        '<w:name w:val="heading 1"/></w:style></w:styles>',
    })  # fmt: skip


def paragraph(text, style="", bold=False):
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    run = "<w:rPr><w:b/></w:rPr>" if bold else ""
    return f"<w:p>{styled}<w:r>{run}<w:t>{text}</w:t></w:r></w:p>"


def cells(*texts):
    return f"<w:tr>{''.join(f'<w:tc>{paragraph(text)}</w:tc>' for text in texts)}</w:tr>"


def test_a_word_document_keeps_its_headings_and_tables(shared):
    table = f"<w:tbl>{cells('Name', 'Size')}{cells('table', '2 m')}</w:tbl>"
    body = paragraph("Título", "H1") + paragraph("Año y señal.", bold=True) + table
    found = shared.read("docx", docx(body))
    assert found.text == (
        "# Título\n\n**Año y señal.**\n\n| Name | Size |\n| --- | --- |\n| table | 2 m |"
    )
    assert found.extractor.startswith("mammoth@")


def odt(body):
    names = "".join(f' xmlns:{name}="{OPEN}:{name}:1.0"' for name in ("office", "text", "table"))
    content = f"<office:document-content{names}><office:body><office:text>{body}</office:text>"
    return archive({"content.xml": f"{content}</office:body></office:document-content>"})


def test_a_text_of_open_document_keeps_its_headings_and_lists(shared):
    body = (
        '<text:h text:outline-level="2">Heading</text:h><text:p>One <text:span>word</text:span>'
        "<text:s/>more &amp; so on.</text:p><text:list><text:list-item><text:p>First</text:p>"
        "</text:list-item><text:list-item><text:p>Second</text:p></text:list-item></text:list>"
    )
    found = shared.read("odt", odt(body)).text
    assert found == "## Heading\n\nOne word more & so on.\n\n- First\n- Second"


def test_a_book_is_read_in_the_order_of_its_spine(shared):
    pages = {
        f"OEBPS/{name}.xhtml": f"<html><body><h1>{name}</h1><p>Text of {name}.</p></body></html>"
        for name in ("two words", "one", "toc")
    }
    book = archive({
        "META-INF/container.xml": '<container xmlns="c"><rootfiles><rootfile '
        'full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="o"><manifest><item id="t" href="toc.xhtml" '
        'properties="nav"/><item id="a" href="two%20words.xhtml"/><item id="b" href="one.xhtml"/>'
        '</manifest><spine><itemref idref="t"/><itemref idref="b"/><itemref idref="a"/></spine>'
        "</package>",
        **pages,
    })  # fmt: skip
    found = shared.read("epub", book).text
    assert found == "# one\n\nText of one.\n\n# two words\n\nText of two words."


def test_of_a_notebook_text_and_code_are_kept_and_outputs_are_not(shared):
    picture = "iVBORw0KGgo" * 9000
    cells_of_it = [
        {"cell_type": "markdown", "source": ["# Title\n", "A line\n", "goes on.\n"]},
        {"cell_type": "markdown", "source": f"![p](data:image/png;base64,{picture}) and words"},
        {
            "cell_type": "code",
            "source": "x = 1\nprint(x)",
            "outputs": [{"data": {"image/png": picture}, "text": "printed"}],
        },
        {"cell_type": "raw", "source": "raw"},
    ]
    notebook = {"cells": cells_of_it, "metadata": {"language_info": {"name": "python"}}}
    found = shared.read("notebook", json.dumps(notebook).encode()).text
    assert found == "# Title\nA line goes on.\n\nand words\n\n```python\nx = 1\nprint(x)\n```"


def test_tex_becomes_markdown_with_its_formulas_as_they_stand(shared):
    source = r"""\documentclass{article}
\usepackage{x}
\begin{document}
\section{On \emph{oak}}
A board that is measured
twice, see~\cite{knuth}. It has $a_1 + b$ in it. % a remark
\begin{itemize}
\item first
\item second \texttt{code}
\end{itemize}
\begin{lstlisting}[language=C]
int x = 1;
  return x;
\end{lstlisting}
Caf\'e ends it.
\end{document}
"""
    found = shared.read("tex", source.encode()).text
    assert "# On *oak*" in found
    assert "A board that is measured twice, see" in found
    assert "$a_1 + b$" in found
    assert "- first\n\n- second `code`" in found
    assert "```\nint x = 1;\n  return x;\n```" in found
    assert "Café ends it." in found
    assert not any(word in found for word in ("documentclass", "usepackage", "remark", "knuth"))


def reason_of(extractor, form, data):
    with pytest.raises(UnreadableError) as caught:
        extractor.read(form, data)
    return caught.value.reason


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
)


def test_entities_of_a_document_are_not_unfolded(shared):
    assert reason_of(shared, "docx", docx(paragraph("&m;"), f"{BOMB}]>")) == SkipReason.BROKEN
    outside = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    assert reason_of(shared, "docx", docx(paragraph("&e;"), outside)) == SkipReason.BROKEN
    assert reason_of(shared, "odt", archive({"content.xml": f"{BOMB}]><x>&m;</x>"})) in {
        SkipReason.BROKEN,
        SkipReason.EMPTY,
    }


@pytest.mark.full
@pytest.mark.parametrize("form", ["docx", "odt", "epub"])
def test_archives_that_are_none_or_mean_harm_are_left_out(shared, form):
    assert reason_of(shared, form, b"PK nonsense") == SkipReason.BROKEN
    assert reason_of(shared, form, archive({"other.txt": "x"})) == SkipReason.BROKEN
    bomb = archive({"content.xml": bytes(300 << 20)})
    assert len(bomb) < 1 << 20
    assert reason_of(shared, form, bomb) == SkipReason.TOO_LARGE


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"cells": 5}', b'{"cells": [5, {}]}'])
def test_notebooks_that_are_none_are_left_out(shared, data):
    assert reason_of(shared, "notebook", data) in {SkipReason.BROKEN, SkipReason.EMPTY}


def test_deep_documents_end_in_time():
    deep = "<text:list><text:list-item>" * 5000
    with Extractor(ExtractionLimits(cpu_s=10.0)) as extractor:
        reason = reason_of(extractor, "odt", odt(deep + "</text:list-item></text:list>" * 5000))
        assert reason in {SkipReason.BROKEN, SkipReason.EMPTY}
        tex = b"\\emph{" * 20_000 + b"x" + b"}" * 20_000
        with suppress(UnreadableError):
            extractor.read("tex", tex)
        assert extractor.read("text", b"next one").text == "next one"


def test_endings_tell_the_form():
    names = ("a.docx", "b.ODT", "c.epub", "d.ipynb", "e.tex", "f.rst", "g.adoc", "h.unknown")
    forms = [form_of(name) for name in names]
    assert forms == ["docx", "odt", "epub", "notebook", "tex", "text", "text", "text"]


RST = """Title of it
===========

A paragraph of several
lines, see :func:`f`.

* an item that
  goes on
* another one

.. note:: A note

   Its text is
   joined too.

.. code-block:: python

   x = 1
   y = 2

Literal::

   stays
   so

+---+---+
| a | b |
+---+---+
"""
RST_JOINED = """Title of it
===========

A paragraph of several lines, see :func:`f`.

* an item that goes on
* another one

.. note:: A note

   Its text is joined too.

.. code-block:: python

   x = 1
   y = 2

Literal::

   stays
   so

+---+---+
| a | b |
+---+---+
"""
ASCIIDOC = """= Title
:toc:

A paragraph of several
lines in it.

[source,python]
----
x = 1
y = 2
----

* an item that
goes on
* another one

|===
| a | b
|===
"""
ASCIIDOC_JOINED = """= Title
:toc:

A paragraph of several lines in it.

[source,python]
----
x = 1
y = 2
----

* an item that goes on
* another one

|===
| a | b
|===
"""


def test_paragraphs_of_other_markups_are_joined_and_nothing_else(shared):
    assert shared.read("text", RST.encode(), name="a.rst").text == RST_JOINED
    assert shared.read("text", ASCIIDOC.encode(), name="a.adoc").text == ASCIIDOC_JOINED
