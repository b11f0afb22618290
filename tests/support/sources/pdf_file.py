"""A PDF of plain lines, as a word processor prints them: one font, no hyphenation.

Owns the few objects that such a file needs. Doesn't break lines.
"""

from collections.abc import Iterator, Sequence

LINES_OF_PAGE = 60


def pdf_of_lines(lines: Sequence[str]) -> bytes:
    """Return a PDF with these lines, 60 on a page; what Latin-1 lacks becomes a question mark."""
    pages = [lines[n : n + LINES_OF_PAGE] for n in range(0, max(1, len(lines)), LINES_OF_PAGE)]
    return _file(list(_objects(pages)))


def _objects(pages: Sequence[Sequence[str]]) -> Iterator[bytes]:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    yield b"<< /Type /Catalog /Pages 2 0 R >>"
    yield b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages))
    yield b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
    for number, lines in enumerate(pages):
        content = 5 + 2 * number
        yield (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % content
        )
        shown = b"\n".join(b"(%s) '" % _escaped(line) for line in lines)
        text = b"BT /F1 9 Tf 12 TL 50 800 Td\n%s\nET" % shown
        yield b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text)


def _escaped(line: str) -> bytes:
    text = line.encode("latin-1", "replace")
    return text.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _file(objects: Sequence[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, count = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % count
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(
        out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (count, start)
    )
