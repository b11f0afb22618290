"""A folder as people have one: documents of several kinds, which nobody wrote for a test.

Owns the choice and the files. The text is what every environment of ours has: the manual that
`pydoc` shows, the descriptions of installed packages, pages and sources of Python's library.
"""

import html
import json
import pydoc
import sysconfig
from collections.abc import Iterator
from email import message_from_string
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from pydoc_data.topics import topics

from tests.support.sources.pdf_file import pdf_of_lines

MODULES = (
    *("argparse", "calendar", "configparser", "csv", "datetime", "decimal", "difflib", "enum"),
    *("fractions", "functools", "heapq", "logging", "pathlib", "statistics", "string", "textwrap"),
)
EXPLORED = ("collections", "itertools", "random", "re", "shutil", "socket", "tempfile", "zipfile")
PACKAGES = ("email", "http", "json", "logging", "unittest", "xml", "importlib", "wsgiref")
LEAST_CHARS = 1500
ANY_LENGTH = 1 << 30


def write_mixed_folder(
    folder: Path, manual_topics: int = 40, packages: int = 40, most_bytes: int = ANY_LENGTH
) -> int:
    """Write Markdown, reStructuredText, HTML, PDF, notebooks, code and a Latin-1 file below it.

    Texts of more than `most_bytes` are left out. Returns how many files there are.
    """
    written = 0
    for name, data in _files(manual_topics, packages, most_bytes):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written += 1
    return written


def _files(manual_topics: int, packages: int, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    fitting = range(LEAST_CHARS, most_bytes + 1)
    chosen = [(name, text) for name, text in sorted(topics.items()) if len(text) in fitting]
    for number, (name, text) in enumerate(chosen[:manual_topics]):
        if number % 8 == 7:
            yield f"papers/{name}.pdf", pdf_of_lines(text.splitlines())
        elif number % 8 == 3:
            yield f"site/{name}.html", _page(name, text)
        else:
            yield f"manual/{name}.rst", text.encode()
    for name, ending, text in _descriptions(packages, fitting):
        yield f"packages/{name}/README{ending}", text.encode()
    for name in MODULES:
        page = pydoc.HTMLDoc().page(name, pydoc.HTMLDoc().document(import_module(name)))
        if len(page) <= most_bytes:
            yield f"pages/{name}.html", page.encode()
    for name in EXPLORED:
        yield f"notebooks/{name}.ipynb", _notebook(name)
    artifact_cache = Path(sysconfig.get_path("stdlib"))
    for package in PACKAGES:
        sources = sorted((artifact_cache / package).glob("*.py"))
        for path in [path for path in sources if path.stat().st_size <= most_bytes][:6]:
            yield f"code/{package}/{path.name}", path.read_bytes()
    yield "notas/acentos.txt", (_SPANISH * 3).encode("latin-1")


def _descriptions(packages: int, fitting: range) -> Iterator[tuple[str, str, str]]:
    """Yield name, ending and text of what installed packages say of themselves."""
    found: dict[str, tuple[str, str]] = {}
    for distribution in distributions():
        told = message_from_string(distribution.read_text("METADATA") or "")
        text, kind = str(told.get_payload()), str(told.get("Description-Content-Type", ""))
        if len(text) in fitting:
            found[str(told["Name"])] = (".md" if "markdown" in kind else ".rst", text)
    for name in sorted(found)[:packages]:
        yield (name, *found[name])


def _page(name: str, text: str) -> bytes:
    """Return a page of a manual, with a menu and a foot such as sites have."""
    paragraphs = "".join(f"<p>{html.escape(each)}</p>\n" for each in text.split("\n\n"))
    return (
        f"<html><head><title>{name}</title></head><body><nav><a href='/'>Home</a></nav>"
        f"<article><h1>{name}</h1>\n{paragraphs}</article><footer>Imprint</footer></body></html>"
    ).encode()


def _notebook(module: str) -> bytes:
    """Return the documentation of a module as a notebook: prose in one cell, code in the next."""
    documented = import_module(module)
    cells: list[dict[str, object]] = [_cell("markdown", f"# {module}\n\n{documented.__doc__}")]
    for name in getattr(documented, "__all__", ())[:12]:
        if text := pydoc.getdoc(getattr(documented, name)):
            cells.append(_cell("markdown", f"## {name}\n\n{text}"))
            cells.append(_cell("code", f"import {module}\nprint({module}.{name})"))
    told = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(told).encode()


def _cell(kind: str, text: str) -> dict[str, object]:
    outputs: dict[str, object] = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": "c", "metadata": {}, "source": text} | outputs


_SPANISH = (
    "El señor de la montaña trabajó toda la mañana en el jardín. Después de comer, su hija le "
    "preguntó cuántos años tenía el roble más viejo, y él contestó que nadie lo sabía con certeza. "
    "Según la gente del pueblo, lo plantó un pastor que llegó de muy lejos.\n\n"
)
