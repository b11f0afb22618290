"""Text out of documents, by a process of its own that may die of any of them.

Owns that process: its limits, its replacement, and what its death says of the document in hand.
Doesn't know where documents come from, or how any of them is read (`extractors`).
"""

import math
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self, cast

import msgpack
import psutil

from jupiterd.errors import Bug
from jupiterd.workers.data.extract.extraction_process import send
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_REPLY_BYTES = 1 << 28

IDLE_SHARE = 0.005
"""Of a processor: a process that waits for something uses less, and on the busiest machine one that
works gets more."""

EXTRACTORS: Mapping[str, str] = {
    "html": "trafilatura", "pdf": "pypdfium2", "feed": "lxml", "docx": "mammoth", "odt": "lxml",
    "epub": "lxml", "tex": "pylatexenc",
}  # fmt: skip
"""Form -> the package that reads it; others are read here."""


@dataclass(frozen=True)
class ExtractionLimits:
    """What one document may cost."""

    memory_bytes: int = 2 << 30
    """Address space of the process, its libraries (a quarter of a GiB) included."""
    cpu_s: float = 60.0
    """Of the processor: on a busy machine a document may take as long as others leave it."""
    wall_s: float = 300.0
    """By the clock, however busy the machine is."""
    idle_s: float = 10.0
    """By the clock, for a parser that waits for something: twice so long it may use no processor.
    """
    tries: int = 2
    """How often a document is begun that took too long by the clock; by the processor, once."""
    documents: int = 2000
    """The process is replaced after so many, for what parsers never give back."""


@dataclass(frozen=True)
class Extracted:
    """What was found in a document."""

    text: str
    extractor: str
    """Name@version; empty for plain text."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else it tells, such as its links; see `extractors`."""
    reason: SkipReason | None = None
    """Why there is no text, though it could be read."""


@cache  # looking a version up reads the package's files
def extractor_of(form: str) -> str:
    """Return name@version of what reads documents of this form; empty for plain text."""
    package = EXTRACTORS.get(form)
    return f"{package}@{version(package)}" if package else ""


class _TooLateError(UnreadableError):
    """A document's time by the clock is up; its process may have been kept waiting."""

    def __init__(self, detail: str) -> None:
        super().__init__(SkipReason.TIMED_OUT, detail=detail)


class _IdleError(TimeoutError):
    """The process uses no processor: what it waits for may never come."""


class Extractor:
    """Takes text out of one document after the other; a context manager."""

    def __init__(self, limits: ExtractionLimits | None = None, language: str = "") -> None:
        """Start nothing yet.

        Args:
            limits: what a document may cost.
            language: what most of them are written in, such as `es`.
        """
        self._language = language
        self._limits = limits or ExtractionLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._done = 0
        self._is_stopped = False

    @property
    def pid(self) -> int:
        """Return the number of the process, 0 where none runs."""
        return self._process.pid if self._process is not None else 0

    def read(
        self, form: str, data: bytes, url: str = "", charset: str = "", name: str = ""
    ) -> Extracted:
        """Return what a document says; it may have told something though it has no text.

        Raises:
            UnreadableError: it can't be read, or costs too much.
        """
        order = {
            "form": form, "data": data, "url": url, "charset": charset, "name": name or url,
            "language": self._language, "cpu_s": self._limits.cpu_s,
        }  # fmt: skip
        reply = self._answer(order)
        reason = SkipReason(reply["reason"]) if "reason" in reply else None
        if reason is SkipReason.OUT_OF_MEMORY:
            self._end()  # what is left of its memory may not be enough for the next one
        metadata = {name: value for name, value in reply.items() if name not in {"text", "reason"}}
        if reason is not None and not metadata:
            raise UnreadableError(reason)
        return Extracted(str(reply["text"]), extractor_of(form), metadata, reason)

    read_ahead = 0
    """It begins with nothing before it is wanted; see `extraction_cache`."""

    def begin(self, form: str, data: bytes, name: str) -> None:
        """Do nothing yet."""

    def _answer(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return what comes of a document; one that a busy machine kept waiting is begun again."""
        for _ in range(self._limits.tries - 1):
            try:
                return self._request(order)
            except _TooLateError:
                continue
        return self._request(order)

    def stop(self) -> None:
        """End the process, also under a document that another thread waits for: it has crashed."""
        self._is_stopped = True
        process = self._process
        if process is not None:
            process.kill()

    def _request(self, order: Mapping[str, Any]) -> dict[str, Any]:
        if self._done >= self._limits.documents:
            self._end()
        link = self._started()
        self._done += 1
        deadline_s = time.monotonic() + self._limits.wall_s
        try:
            link.settimeout(self._limits.wall_s)
            send(link, order)
            return cast("dict[str, Any]", msgpack.unpackb(self._reply(link, deadline_s)))
        except TimeoutError as error:
            self._end()
            is_idle = isinstance(error, _IdleError)
            what_happened = "did nothing for" if is_idle else "took longer than"
            limit_s = 2 * self._limits.idle_s if is_idle else self._limits.wall_s
            raise _TooLateError(f"{what_happened} {limit_s:g} s") from error
        except OSError as error:
            raise self._cause_of_death() from error
        except ValueError as error:  # text that is no text
            raise UnreadableError(SkipReason.BROKEN) from error

    def _reply(self, link: socket.socket, deadline_s: float) -> bytes:
        size = int.from_bytes(self._exactly(link, 8, deadline_s), "big")
        if size > MAX_REPLY_BYTES:
            self._end()
            raise UnreadableError(SkipReason.TOO_LARGE)
        return self._exactly(link, size, deadline_s)

    def _exactly(self, link: socket.socket, size: int, deadline_s: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._next_piece(link, size - len(data), deadline_s)
            if not piece:
                raise ConnectionResetError
            data += piece
        return bytes(data)

    def _next_piece(self, link: socket.socket, most: int, deadline_s: float) -> bytes:
        """Wait for more of the reply, as long as the process does anything for it."""
        used_s = -math.inf  # most documents are read sooner than it's worth asking for
        while True:
            link.settimeout(min(max(0.001, deadline_s - time.monotonic()), self._limits.idle_s))
            try:
                return link.recv(min(most, 1 << 20))
            except TimeoutError as error:
                before_s, used_s = used_s, self._cpu_s()
                if time.monotonic() >= deadline_s:
                    raise
                if used_s - before_s < IDLE_SHARE * self._limits.idle_s:
                    raise _IdleError from error

    def _cpu_s(self) -> float:
        """Return what the process has had of the processor; 0 where it has ended."""
        try:
            times = psutil.Process(self.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system

    def _cause_of_death(self) -> UnreadableError:
        """Collect the dead process and return what it died of."""
        if self._process is None:
            raise Bug("a process that was never started has died")
        self._close_link()
        status = self._process.wait()
        self._process = None
        if -status != signal.SIGXCPU:
            return UnreadableError(SkipReason.CRASHED)
        detail = f"took longer than {self._limits.cpu_s:g} s of the processor"
        return UnreadableError(SkipReason.TIMED_OUT, detail=detail)

    def _started(self) -> socket.socket:
        if self._link is not None:
            return self._link
        ours, theirs = socket.socketpair()
        module = "jupiterd.workers.data.extract.extraction_process"
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-m", module, str(self._limits.memory_bytes)),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
            )
        if self._is_stopped:  # while it was being started
            self._process.kill()
        self._link, self._done = ours, 0
        return ours

    def _end(self) -> None:
        self._close_link()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _close_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
