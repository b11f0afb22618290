"""Taking text out of what strangers wrote, in a process that may die of it."""

import os
import signal
import threading
import time
import zlib
from pathlib import Path

import psutil
import pytest

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.workers.data.collect.cleaned_document import MOST_CLEANED_HERE, within_limits
from jupiterd.workers.data.collect.extraction_cache import MAX_TRIES, ExtractionCache
from jupiterd.workers.data.collect.work_queue import WorkQueue
from jupiterd.workers.data.extract.extraction import ExtractionLimits, Extractor
from jupiterd.workers.data.extract.extractor_pool import ExtractorPool
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from tests.support.workers.local_site import LONG, page

HELLO = b"BT /F1 24 Tf 20 200 Td (Hello from a page) Tj ET\n"


def pdf(content=HELLO, kids=b"[3 0 R]", packed=False):
    """Return a PDF of one page with this content."""
    filters = b""
    if packed:
        content, filters = zlib.compress(content, 9), b" /Filter /FlateDecode"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids " + kids + b" /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), filters, content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(
        out + b"xref\n0 6\n0000000000 65535 f \n" + table
        + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared():
    with Extractor() as extractor:
        yield extractor


def reason_of(extractor, form, data, **how):
    with pytest.raises(UnreadableError) as caught:
        extractor.read(form, data, **how)
    return caught.value.reason


def test_a_page_becomes_markdown_without_its_frame(shared):
    code = "<pre><code>def f():\n    return 1\n</code></pre>"
    html = (
        f"<html><body><nav><a href='/x'>Menu of the site</a></nav><article><h1>Title</h1>"
        f"<p>{LONG}</p>{code}<p>{LONG}</p></article><footer>Imprint</footer></body></html>"
    )
    found = shared.read("html", html.encode(), url="http://a.example/b/")
    assert found.text.startswith("# Title\n")
    assert "```\ndef f():\n    return 1" in found.text
    assert "Menu" not in found.text
    assert found.extractor.startswith("trafilatura@")
    assert found.metadata["links"] == ["http://a.example/x"]


def test_a_page_tells_its_base_licence_and_wishes(shared):
    head = (
        '<base href="/docs/"><link rel="license" '
        'href="https://creativecommons.org/publicdomain/zero/1.0/">'
    )
    html = page("Title", "one", "mailto:x@y", "javascript:1", "//b.example/two", head=head)
    told = shared.read("html", html.encode(), url="http://a.example/").metadata
    assert told["links"] == ["http://a.example/docs/one", "http://b.example/two"]
    assert told["license"] == "CC0-1.0"
    closed = page("Title", "one", head='<meta name="robots" content="nofollow, NOAI">')
    found = shared.read("html", closed.encode(), url="http://a.example/")
    assert (found.text, found.reason, found.metadata["links"]) == ("", SkipReason.ROBOTS, [])


@pytest.mark.parametrize(
    ("charset", "encoding"), [("", "utf-8"), ("iso-8859-1", "latin-1"), ("nonsense", "utf-8")]
)
def test_a_page_is_decoded_as_its_server_says(shared, charset, encoding):
    html = page("Caf\u00e9", body="Ein Caf\u00e9 in der N\u00e4he. " * 10).encode(encoding)
    assert "N\u00e4he" in shared.read("html", html, charset=charset).text


def test_a_pdf_becomes_text(shared):
    found = shared.read("pdf", pdf())
    assert found.text == "Hello from a page"
    assert found.extractor.startswith("pypdfium2@")


def test_a_pdf_that_another_program_wrote_is_read_and_an_encrypted_one_is_not(shared, tmp_path):
    import io

    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter()
    writer.append(PdfReader(io.BytesIO(pdf())))
    writer.append(PdfReader(io.BytesIO(pdf(HELLO.replace(b"page", b"leaf")))))
    whole = io.BytesIO()
    writer.write(whole)
    assert shared.read("pdf", whole.getvalue()).text == "Hello from a page\n\nHello from a leaf"
    writer.encrypt("secret", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    assert reason_of(shared, "pdf", locked.getvalue()) == SkipReason.ENCRYPTED


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "broken"),
        (b"%PDF-1.4 nonsense", "broken"),
        (pdf()[:300], "broken"),
        (pdf(kids=b"[2 0 R]"), "empty"),  # its pages lead back to themselves
        (pdf(b"[" * 500_000), "empty"),
        (pdf(b""), "empty"),
    ],
)
def test_a_pdf_that_is_none_or_means_harm_is_left_out(shared, data, reason):
    assert len(os.environ["PYTEST_CURRENT_TEST"]) < 4096  # the process inherits it, if it can
    assert reason_of(shared, "pdf", data) in {reason, "broken"}
    assert shared.read("pdf", pdf()).text == "Hello from a page"


def test_a_pdf_that_is_a_bomb_is_left_out(shared):
    assert reason_of(shared, "pdf", pdf(bytes(200 << 20), packed=True)) in {"empty", "broken"}
    assert shared.read("pdf", pdf()).text == "Hello from a page"


@pytest.mark.parametrize(
    "data", [b"", b"\0\1\2", b"<html></html>", b"<div>" * 200_000, b"<!--" * 1000, b"\xff" * 999]
)
def test_pages_without_text_or_sense_are_left_out(shared, data):
    try:
        reason = shared.read("html", data).reason
    except UnreadableError as error:
        reason = error.reason
    assert reason in {SkipReason.EMPTY, SkipReason.BROKEN, SkipReason.NOT_TEXT}


def test_plain_text_is_in_some_encoding_or_none(shared):
    assert shared.read("text", b"\xef\xbb\xbfcaf\xc3\xa9").text == "caf\u00e9"
    assert shared.read("text", b"caf\xe9").text == "caf\u00e9"
    assert reason_of(shared, "text", b"a\0b") == SkipReason.NOT_TEXT
    assert reason_of(shared, "text", b" \n") == SkipReason.EMPTY


@pytest.fixture(scope="module")
def looping():
    """Return a PDF that its parser is busy with for seconds."""
    return pdf(HELLO * 2_000_000, packed=True)


@pytest.mark.full
def test_a_pdf_that_loops_its_parser_is_cut_short_and_the_next_one_is_read(looping):
    with Extractor(ExtractionLimits(wall_s=1.0)) as extractor:
        assert reason_of(extractor, "pdf", looping) == SkipReason.TIMED_OUT
        assert extractor.pid == 0
    with Extractor(ExtractionLimits(cpu_s=0.5, wall_s=50.0)) as extractor:
        assert reason_of(extractor, "pdf", looping) == SkipReason.TIMED_OUT
        assert extractor.read("pdf", pdf()).text == "Hello from a page"


def test_a_document_that_a_busy_machine_keeps_waiting_is_begun_again_and_told_as_slow():
    with Extractor(ExtractionLimits(wall_s=30.0)) as extractor:
        extractor.read("pdf", pdf())
        stopped = extractor.pid
        os.kill(stopped, signal.SIGSTOP)  # gets nothing of the processor, as on a busy machine
        extractor._limits = ExtractionLimits(wall_s=1.0)
        assert extractor.read("pdf", pdf()).text == "Hello from a page"
        assert extractor.pid not in {0, stopped}
        os.kill(extractor.pid, signal.SIGSTOP)
        extractor._limits = ExtractionLimits(wall_s=0.5, tries=1)
        with pytest.raises(UnreadableError) as caught:
            extractor.read("pdf", pdf())
        assert caught.value.reason == SkipReason.TIMED_OUT
        assert caught.value.detail == "took longer than 0.5 s"


@pytest.mark.full
def test_a_parser_that_waits_for_something_is_ended_long_before_one_that_works(looping):
    with Extractor() as extractor:
        extractor.read("pdf", pdf())
        os.kill(extractor.pid, signal.SIGSTOP)
        extractor._limits = ExtractionLimits(idle_s=0.3, tries=1)
        with pytest.raises(UnreadableError) as caught:
            extractor.read("pdf", pdf())
        assert caught.value.detail == "did nothing for 0.6 s"
        extractor._limits = ExtractionLimits(cpu_s=2.0, idle_s=0.3)
        assert reason_of(extractor, "pdf", looping) == SkipReason.TIMED_OUT


def test_a_document_that_kills_its_parser_costs_nothing_but_itself(looping):
    with Extractor() as extractor:
        extractor.read("pdf", pdf())
        victim = extractor.pid

        def strike():
            process = psutil.Process(victim)
            while process.cpu_times().user < idle_s + 0.2:
                pass
            os.kill(victim, signal.SIGSEGV)

        idle_s = psutil.Process(victim).cpu_times().user
        striker = threading.Thread(target=strike)
        striker.start()
        assert reason_of(extractor, "pdf", looping) == SkipReason.CRASHED
        striker.join()
        assert extractor.read("pdf", pdf()).text == "Hello from a page"
        assert extractor.pid != victim


@pytest.mark.full
def test_a_page_that_fills_the_memory_costs_nothing_but_itself():
    with Extractor(ExtractionLimits(memory_bytes=400 << 20)) as extractor:
        huge = b"<html><body>" + b"<p>Some words. <a href=/x>x</a></p>\n" * 200_000
        assert reason_of(extractor, "html", huge) in {
            SkipReason.OUT_OF_MEMORY,
            SkipReason.CRASHED,  # C code that got no memory
        }
        assert extractor.read("pdf", pdf()).text == "Hello from a page"


def test_the_process_is_used_again_replaced_now_and_then_and_ends_with_its_owner():
    with Extractor(ExtractionLimits(documents=3)) as extractor:
        pids = []
        for _ in range(6):
            extractor.read("pdf", pdf())
            pids.append(extractor.pid)
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3]
    assert not psutil.pid_exists(pids[-1])


def test_a_sitemaps_entities_are_not_unfolded(shared):
    def sitemap(entities, place):
        body = f"<urlset><url><loc>{place}</loc></url></urlset>"
        return f"<!DOCTYPE x [{entities}]>{body}".encode()

    bomb = '<!ENTITY a0 "aaaaaaaaaa">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)
    )
    assert len(str(shared.read("sitemap", sitemap(bomb, "&a11;")).metadata)) < 10_000
    outside = sitemap('<!ENTITY e SYSTEM "file:///etc/passwd">', "&e;")
    assert "root:" not in str(shared.read("sitemap", outside).metadata)


@pytest.fixture
def kept(tmp_path, shared):
    with WorkQueue(tmp_path / "extracted.db") as queue:
        yield ExtractionCache(shared, queue)


def test_what_was_taken_out_is_not_taken_out_again(kept, shared, monkeypatch):
    first = kept.read("html", page("Title").encode(), "http://a.example/")
    monkeypatch.setattr(type(shared), "read", None)
    assert kept.read("html", page("Title").encode(), "http://a.example/") == first


def test_what_cannot_be_read_is_remembered_too(kept, shared, monkeypatch):
    assert reason_of(kept, "pdf", b"nonsense") == SkipReason.BROKEN
    monkeypatch.setattr(type(shared), "read", None)
    assert reason_of(kept, "pdf", b"nonsense") == SkipReason.BROKEN


def test_a_document_over_which_the_worker_was_killed_again_and_again_is_given_up(
    tmp_path: Path, shared
):
    class Killed(BaseException):
        pass

    class Deadly:
        def read(self, *_arguments):
            raise Killed

    for _ in range(MAX_TRIES):
        with WorkQueue(tmp_path / "extracted.db") as queue, pytest.raises(Killed):
            ExtractionCache(Deadly(), queue).read("pdf", b"deadly")
    with WorkQueue(tmp_path / "extracted.db") as queue:
        kept = ExtractionCache(Deadly(), queue)
        assert reason_of(kept, "pdf", b"deadly") == SkipReason.GAVE_UP


def test_the_end_of_a_worker_counts_for_nothing_of_what_it_had_begun_ahead(tmp_path: Path, shared):
    class Killed(BaseException):
        pass

    class Deadly:
        def read(self, *_arguments):
            raise Killed

    with WorkQueue(tmp_path / "extracted.db") as queue, ExtractorPool(cores=1) as pool:
        ExtractionCache(shared, queue, pool).begin("html", b"<p>begun beside others</p>", "")
        for _ in range(MAX_TRIES):
            again = ExtractionCache(Deadly(), queue, pool)
            again.begin("html", b"<p>begun beside others</p>", "")
            with pytest.raises(Killed):
                again.read("html", b"<p>begun beside others</p>")
        alone = ExtractionCache(Deadly(), queue, pool)
        assert reason_of(alone, "html", b"<p>begun beside others</p>") == SkipReason.GAVE_UP


@pytest.mark.parametrize("head", ["", '<meta charset="utf-8">', '<meta charset="iso-8859-1">'])
@pytest.mark.parametrize("charset", ["", "utf-8", "iso-8859-1"])
def test_a_page_in_a_western_encoding_is_read_whatever_it_says(shared, head, charset):
    body = "<p>A\u00f1o, se\u00f1al, coraz\u00f3n; \u00bfqu\u00e9 dijo el se\u00f1or?</p>" * 14
    html = f"<html><head>{head}</head><body><article>{body}</article></body></html>"
    for encoding in ("cp1252", "utf-8"):
        found = shared.read("html", html.encode(encoding), charset=charset)
        assert (
            "A\u00f1o, se\u00f1al, coraz\u00f3n; \u00bfqu\u00e9 dijo el se\u00f1or?" in found.text
        )


def test_a_pool_that_is_left_ends_what_it_is_busy_with(tmp_path):
    began_s = time.monotonic()
    with ExtractorPool(cores=2) as pool:
        endless = [pool.begin("html", b"<p>" * (1 << 20) + b"%d" % n, "") for n in range(4)]
        while not any(future.running() for future in endless):
            time.monotonic()
    assert all(future.cancelled() or future.exception() is not None for future in endless)
    assert time.monotonic() - began_s < ExtractionLimits().wall_s / 3


def test_markup_is_cleaned_within_limits():
    form = DocumentForm(DocumentKind.DOCUMENTATION, "markdown")
    usual = "# A pump\n\nIt moves [water](a.md).  \nAll of it.\n\n" * (MOST_CLEANED_HERE // 40)
    endless = "".join(f"- item {n} of [a list](a.md) with <b>marks</b>\n" for n in range(200_000))
    with Extractor(ExtractionLimits(cpu_s=0.2)) as extractor:
        clean = within_limits(extractor)
        assert clean(usual, form) == cleaned_markup(usual, form)
        with pytest.raises(UnreadableError) as caught:
            clean(endless, form)
        assert caught.value.reason == SkipReason.TIMED_OUT
        assert clean("- [one](a.md) item", form) == "- one item"
