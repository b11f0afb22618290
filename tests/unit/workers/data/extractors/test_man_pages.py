"""Pages of manuals become Markdown, in both languages that they are written in."""

import gzip

import pytest

from jupiterd.cycle.text_rules.document_kind import DocumentKind, document_kind
from jupiterd.workers.data.collect.text_files import PIECE_BYTES, TextFiles
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.tables.file_forms import form_of


@pytest.fixture(scope="module")
def shared():
    with Extractor() as extractor:
        yield extractor


def read(extractor, name, text):
    return extractor.read(form_of(name), text.encode(), name=name).text


MAN = r"""'\" t
.\" Nobody reads this.
.TH "PUMP" "1" "2024-05-01" "Hall 1.2" "Users' Manual"
.SH NAME
pump \- move water
.SH SYNOPSIS
.B pump
[\fIOPTION\fR...]
.I TANK
.SH DESCRIPTION
The pump moves water
to the tank\(cqs inlet.
.PP
It waits while the tank is full\&.
.SS Options
.TP
.BR \-f ", " \-\-fast
Move it fast.
.IP "\fB\-n\fR \fIN\fR"
Do it N times.
.IP \(bu 2
a thing
.nf
$ pump \-f north
    done
.fi
.de XX
not said
..
.TS
tab(:);
l l.
north:hall
.TE
.SH SEE ALSO
.BR tank (5)
"""

MDOC = r""".Dd May 1, 2024
.Dt PUMP 1
.Os
.Sh NAME
.Nm pump
.Nd move water
.Sh DESCRIPTION
The
.Nm
moves water to
.Ar tank ,
see
.Xr tank 5 .
.Bl -tag -width Ds
.It Fl f Ar speed
Move it so fast.
.El
.Bd -literal
$ pump -f 3
.Ed
"""


def test_a_page_in_man_is_read(shared):
    text = read(shared, "pump.1", MAN)
    assert text.startswith("# pump(1)\n\n## NAME\n\npump - move water\n\n## SYNOPSIS")
    assert "The pump moves water to the tank\u2019s inlet." in text
    assert "### Options\n\n**-f, --fast**\n\nMove it fast.\n\n**-n N**" in text
    assert "```\n$ pump -f north\n    done\n```" in text
    assert "```\nnorth:hall\n```" in text
    assert "tank(5)" in text
    for left_out in ("not said", "Nobody", ".TP", "\\f"):
        assert left_out not in text
    assert document_kind("pump.1", text).kind is DocumentKind.DOCUMENTATION


def test_a_page_in_mdoc_is_read(shared):
    text = read(shared, "share/man/pump.1", MDOC)
    assert "# pump(1)\n\n## NAME\n\npump - move water" in text
    assert "The pump moves water to tank, see tank(5)." in text
    assert "**-f speed**\n\nMove it so fast." in text
    assert "```\n$ pump -f 3\n```" in text


def test_a_file_that_only_ends_so_stays_as_it_is(shared):
    assert read(shared, "build.log.1", "It began.\nIt ended.\n").split() == (
        ["It", "began.", "It", "ended."]
    )
    assert (form_of("a.3pm"), form_of("a.txt"), form_of("part.00001")) == ("man", "text", "text")


@pytest.mark.parametrize("name", ["daemon.log.1", "daemon.log.1.gz"])
def test_a_long_log_that_only_ends_so_is_cut_as_other_logs_are(shared, tmp_path, name):
    log = b"The pump ran for an hour.\n" * (5 * PIECE_BYTES // 52)
    (tmp_path / name).write_bytes(gzip.compress(log) if name.endswith(".gz") else log)
    (tmp_path / "pump.1").write_text(MAN)
    texts = [each.text for each in TextFiles(tmp_path, "text", shared).documents()]
    assert len(texts) == 4
    assert sum(text.count("for an hour") for text in texts) == log.count(b"\n")
    assert texts[-1].startswith("# pump(1)")


def test_what_perl_writes_is_read(shared):
    page = r""".ie n \{\
.    ds -- \(*W-
'br\}
.TH PUMP 3pm
.SH NAME \" of the module
pump
.SH "SYNOPSIS"
.Vb 2
\&    use Pump;
\&    my $pump = Pump\->new;
.Ve
.Sp
Written by J\(:org M\(:uller, \(Bqm\['e]chant\(cq \*(-- \(/lodz.
.ig END
left out
..
.END
.als VY Vx
.  am VY
.    ad l
.  .
.de Vx XX
left out, too
..
.XX
.BR pump (5) \" a comment
It ends here.
"""
    text = read(shared, "Pump.3pm", page)
    assert "## NAME\n\npump" in text
    assert "```\n    use Pump;\n    my $pump = Pump->new;\n```\n\nWritten by" in text
    assert "J\u00f6rg M\u00fcller, \u201em\u00e9chant\u2019 \u2014 \u0142odz." in text
    assert text.endswith("pump(5)\nIt ends here.\n") or "pump(5) It ends here." in text
    for left_out in ("left out", "comment", "module"):
        assert left_out not in text


def test_functions_sections_and_headers_of_mdoc_are_read(shared):
    page = """.Dt PUMP 3
.Sh SYNOPSIS
.In pump.h
.Ft int
.Fn pump_open "const char *name" "int flags"
.Sh DESCRIPTION
It needs
.Fn pump_stop ,
see
.Sx RETURN VALUES .
"""
    text = read(shared, "pump.3", page)
    assert "<pump.h>" in text
    assert "pump_open(const char *name, int flags)" in text
    assert "It needs pump_stop(), see RETURN VALUES." in text
