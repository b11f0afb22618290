"""The process that parses what strangers wrote.

Owns the limits that it lives under and the table of forms. `extraction` starts it by `python -m
jupiterd.workers.data.extract.extraction_process`; its standard input is a socket: one request, one
reply, each length-prefixed msgpack. It reads nothing else and writes no file; whatever becomes of
it, only the document in hand is lost.
"""

import contextlib
import ctypes
import gc
import importlib
import logging
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import msgpack

from jupiterd.cycle.text_rules.text_form import LineMeaning, printed_paragraphs, text_form
from jupiterd.workers.data.extractors.layouts import layout_of
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

CLEANING = "cleaning"
"""What is asked of a text that was read already: its lines are as they are to stay."""

FORMS: Mapping[str, tuple[str, str]] = {
    "text": ("jupiterd.workers.data.extractors.text", "read"),
    "html": ("jupiterd.workers.data.extractors.html", "read"),
    "pdf": ("jupiterd.workers.data.extractors.pdf", "read"),
    "docx": ("jupiterd.workers.data.extractors.word", "read"),
    "odt": ("jupiterd.workers.data.extractors.open_document", "read"),
    "epub": ("jupiterd.workers.data.extractors.epub", "read"),
    "notebook": ("jupiterd.workers.data.extractors.notebook", "read"),
    "tex": ("jupiterd.workers.data.extractors.tex", "read"),
    "man": ("jupiterd.workers.data.extractors.man", "read"),
    "sitemap": ("jupiterd.workers.data.extractors.xml", "read_sitemap"),
    "feed": ("jupiterd.workers.data.extractors.xml", "read_feed"),
    CLEANING: ("jupiterd.workers.data.extractors.cleaning", "read"),
}
"""Form of a document -> the module and the function that read it."""

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""Objects, of which a page of a usual size leaves a few hundred: Python itself looks for cycles
among all that is in use after every 700, which takes time and finds next to nothing."""

_RAW_FIELDS = tuple(field.name for field in fields(RawDocument))
_PR_SET_PDEATHSIG = 1


def main(memory_bytes: int) -> None:
    """Answer requests until the other end closes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()  # parsers complain about every second document
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_AS, memory_bytes)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    link = socket.socket(fileno=os.dup(0))
    while (body := receive(link)) is not None:
        order = cast("dict[str, Any]", msgpack.unpackb(body))
        _limit_cpu(float(order["cpu_s"]))
        send(link, _answer(order))


def _answer(order: Mapping[str, Any]) -> Mapping[str, Any]:
    module, function = FORMS[order["form"]]
    given = RawDocument(**{name: order[name] for name in _RAW_FIELDS})
    try:
        read = getattr(importlib.import_module(module), function)
        return _in_one_form(order["form"], given.name, read(given))
    except UnreadableError as error:
        return {"text": "", "reason": str(error.reason)}
    except MemoryError:
        return {"text": "", "reason": str(SkipReason.OUT_OF_MEMORY)}
    except Exception:  # noqa: BLE001 - parsers raise anything at all at what strangers wrote
        with contextlib.suppress(OSError):  # a file can't grow in this process, and a log is one
            traceback.print_exc(limit=-3)
        return {"text": "", "reason": str(SkipReason.BROKEN)}


def _in_one_form(form: str, name: str, found: Mapping[str, Any]) -> Mapping[str, Any]:
    text = "" if form == CLEANING else found["text"]
    return {**found, "text": _formed(text, layout_of(form, name, text))} if text else found


def _formed(text: str, layout: LineMeaning) -> str:
    """Return the text in the one form of its layout; printed pages as Markdown has paragraphs."""
    formed = text_form(text, layout)
    return printed_paragraphs(formed) if layout is LineMeaning.PDF else formed


def receive(link: socket.socket) -> bytes | None:
    """Return the next message; None where the other end has closed."""
    head = _exactly(link, 8)
    return None if head is None else _exactly(link, int.from_bytes(head, "big"))


def send(link: socket.socket, message: Mapping[str, Any]) -> None:
    """Send one message."""
    body = cast("bytes", msgpack.packb(dict(message), unicode_errors="surrogatepass"))
    link.sendall(len(body).to_bytes(8, "big") + body)


def _exactly(link: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = link.recv(min(size - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def limit(kind: int, value: int) -> None:
    """Bound what this process may use, where the system lets us."""
    with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
        resource.setrlimit(kind, (value, value))


def _limit_cpu(seconds: float) -> None:
    """Let the kernel end this process once so much more time on a processor is used up."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, most))


if __name__ == "__main__":
    main(int(sys.argv[1]))
