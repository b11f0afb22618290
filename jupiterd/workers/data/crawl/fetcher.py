"""Fetching over HTTP from strangers: politely, within bounds, and never from a private address.

Owns the pace for each host, the conditional request, the size and the time of an answer, and its
unpacking. Doesn't follow redirects (whoever asked decides on each), parse, or know robots.txt.
"""

import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import httpx

from jupiterd.cycle.base.web_addresses import normalised as normalised  # noqa: PLC0414 - for collectors
from jupiterd.workers.data.crawl.allowed_addresses import checked_addresses
from jupiterd.workers.data.skips import SkipReason, UnreadableError

USER_AGENT = "JupiterCollector/1"
"""What robots.txt may name, and what servers see."""

NO_ANSWER = frozenset({SkipReason.UNREACHABLE, SkipReason.TIMED_OUT, SkipReason.NOT_ASKED})
"""Why nothing was heard from a host, which may be otherwise when it is asked again."""

MAX_UNANSWERED = 8
"""A host that leaves so many requests running without an answer isn't asked any more: each may
take a minute, and there may be thousands of pages."""

MAX_HOSTS = 64
"""Connections are kept to no more hosts."""


@dataclass(frozen=True)
class FetchResponse:
    """What a server said."""

    status: int
    url: str
    body: bytes
    content_type: str
    """Such as text/html; empty where the server doesn't say."""
    charset: str
    etag: str
    last_modified: str
    location: str
    """Where a redirect leads, as a whole address."""

    @property
    def is_unchanged(self) -> bool:
        """Say whether it is still what was fetched before."""
        return self.status == HTTPStatus.NOT_MODIFIED

    @property
    def is_redirect(self) -> bool:
        """Say whether it only tells where else to look."""
        return self.status in {301, 302, 303, 307, 308} and bool(self.location)


@dataclass(frozen=True)
class Manners:
    """How a source wants to be fetched."""

    delay_s: float
    timeout_s: float
    max_body_bytes: int
    allow_private: bool


class Fetcher:
    """Fetches one page after the other; a context manager."""

    def __init__(self, manners: Manners, pause: Callable[[float], None]) -> None:
        self._manners = manners
        self._pause = pause
        self._transports: dict[str, httpx.HTTPTransport] = {}
        self._sockets: dict[str, socket.socket] = {}
        self._next_s: dict[str, float] = {}
        self._unanswered: Counter[str] = Counter()
        """Host -> requests since it last answered."""
        self.read_bytes = 0
        """Of all bodies, as they came over the network."""

    def get(
        self, url: str, etag: str = "", last_modified: str = "", delay_s: float = 0.0
    ) -> FetchResponse:
        """Ask for a page, once this host's turn has come, unless it has stopped answering.

        Args:
            url: its address.
            etag: of what was fetched before; the server then says whether it has changed.
            last_modified: the same, as a time.
            delay_s: what the host's robots.txt asks for, if it is more than our own.

        Raises:
            UnreadableError: it can't be had, or is too much.
        """
        if self._unanswered[_host_of(url)] >= MAX_UNANSWERED:
            raise UnreadableError(SkipReason.NOT_ASKED)
        self._wait_for_turn(url, max(delay_s, self._manners.delay_s))
        headers = {
            "User-Agent": USER_AGENT,
            "Accept": "text/html, application/xhtml+xml, text/*, application/pdf, */*;q=0.1",
            "Accept-Encoding": "gzip",
        }
        if etag:
            headers["If-None-Match"] = etag
        if last_modified:
            headers["If-Modified-Since"] = last_modified
        try:
            answer = self._request(url, headers)
        except UnreadableError as error:
            self._count(url, is_answered=error.reason not in NO_ANSWER)
            raise
        self._count(url, is_answered=True)
        return answer

    def ask_silent_hosts(self) -> None:
        """Ask again those that had stopped answering."""
        self._unanswered.clear()

    def _count(self, url: str, *, is_answered: bool) -> None:
        if is_answered:
            self._unanswered.pop(_host_of(url), None)
        else:
            self._unanswered[_host_of(url)] += 1

    def _request(self, url: str, headers: Mapping[str, str]) -> FetchResponse:
        try:
            return self._answer(httpx.Request("GET", url, headers=headers), url)
        except httpx.TimeoutException as error:
            raise UnreadableError(SkipReason.TIMED_OUT) from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise UnreadableError(SkipReason.UNREACHABLE) from error

    @contextmanager
    def _bell(self, host: str) -> Generator[None]:
        """Shut the connection once the time is up: a server that drips is never silent."""
        rang = threading.Event()

        def ring() -> None:
            rang.set()
            with suppress(OSError, KeyError):
                self._sockets[host].shutdown(socket.SHUT_RDWR)

        bell = threading.Timer(self._manners.timeout_s, ring)
        bell.start()
        try:
            yield
        except httpx.TransportError:
            if not rang.is_set():
                raise
        finally:
            bell.cancel()
        if rang.is_set():  # a body of no told length seems to have ended in order
            raise UnreadableError(SkipReason.TIMED_OUT)

    def _answer(self, request: httpx.Request, url: str) -> FetchResponse:
        with self._bell(request.url.host):
            response = self._sent(request)
            try:
                is_page = response.status_code == HTTPStatus.OK
                body = self._body(response) if is_page else b""
            finally:
                response.close()
        content_type, charset = _type_of(response.headers.get("Content-Type", ""))
        location = response.headers.get("Location", "")
        return FetchResponse(
            status=response.status_code,
            url=url,
            body=body,
            content_type=content_type,
            charset=charset,
            etag=response.headers.get("ETag", ""),
            last_modified=response.headers.get("Last-Modified", ""),
            location=urljoin(url, location) if location else "",
        )

    def _sent(self, request: httpx.Request) -> httpx.Response:
        """Connect to one of the addresses that were looked at, under the host's own name."""
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        addresses = checked_addresses(host, port, allow_private=self._manners.allow_private)
        timeout_s = min(self._manners.timeout_s, 30.0)

        def notice(event: str, facts: Mapping[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                self._remember(host, facts["return_value"].get_extra_info("socket"))

        extensions = {
            "trace": notice,
            "timeout": httpx.Timeout(timeout_s).as_dict(),
            "sni_hostname": host,  # certificates are checked against the name as well
        }
        for number, address in enumerate(addresses, 1):
            url = request.url.copy_with(host=address)
            pinned = httpx.Request("GET", url, headers=request.headers, extensions=extensions)
            try:
                return self._transport(host).handle_request(pinned)
            except httpx.ConnectError:
                if number == len(addresses):
                    raise
        raise UnreadableError(SkipReason.UNREACHABLE)

    def _remember(self, host: str, connection: socket.socket) -> None:
        """Keep a way to the connection that TLS leaves as it is."""
        if (before := self._sockets.pop(host, None)) is not None:
            before.close()
        self._sockets[host] = connection.dup()

    def _transport(self, host: str) -> httpx.HTTPTransport:
        """Return this host's own connections: another host at the same address has its own."""
        if host not in self._transports:
            if len(self._transports) >= MAX_HOSTS:
                self._drop(next(iter(self._transports)))
            # No proxy of the environment: it would connect to whatever it likes.
            self._transports[host] = httpx.HTTPTransport(trust_env=False)
        return self._transports[host]

    def _body(self, response: httpx.Response) -> bytes:
        most = self._manners.max_body_bytes
        content_length = response.headers.get("Content-Length", "")
        if content_length.isdigit() and int(content_length) > most:
            raise UnreadableError(SkipReason.TOO_LARGE)
        unpack = _unpacker(response.headers.get("Content-Encoding", ""), most)
        body = bytearray()
        for piece in response.iter_raw():
            self.read_bytes += len(piece)
            body += unpack(piece)
            if len(body) > most:
                raise UnreadableError(SkipReason.TOO_LARGE)
        return bytes(body)

    def _drop(self, host: str) -> None:
        self._transports.pop(host).close()
        if (connection := self._sockets.pop(host, None)) is not None:
            connection.close()

    def _wait_for_turn(self, url: str, delay_s: float) -> None:
        host = _host_of(url)
        wait_s = self._next_s.get(host, 0.0) - time.monotonic()
        if wait_s > 0:
            self._pause(wait_s)
        if len(self._next_s) > 100_000:
            self._next_s.clear()
        self._next_s[host] = time.monotonic() + delay_s

    def wait_s(self, url: str) -> float:
        """Return how long this page's host has to be left alone."""
        return max(0.0, self._next_s.get(_host_of(url), 0.0) - time.monotonic())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for host in list(self._transports):
            self._drop(host)


def _host_of(url: str) -> str:
    """Return what has a pace of its own: a host with its port."""
    return urlsplit(url).netloc


def gunzipped(data: bytes, most: int) -> bytes:
    """Return the content of a gzip file.

    Raises:
        UnreadableError: it is larger than that, or broken.
    """
    content = _unpacker("gzip", most)(data)
    if len(content) > most:
        raise UnreadableError(SkipReason.TOO_LARGE)
    return content


def _unpacker(encoding: str, most: int) -> Callable[[bytes], bytes]:
    """Return what unpacks the pieces of a body, a little more than `most` bytes at the most."""
    if encoding.lower() in {"", "identity"}:
        return lambda piece: piece
    if encoding.lower() not in {"gzip", "x-gzip"}:
        raise UnreadableError(SkipReason.UNKNOWN_FORM)
    stream = zlib.decompressobj(wbits=31)
    room = most + 1

    def unpack(piece: bytes) -> bytes:
        nonlocal room
        try:
            content = stream.decompress(piece, room) if room > 0 else b""
        except zlib.error as error:
            raise UnreadableError(SkipReason.BROKEN) from error
        room -= len(content)
        return content

    return unpack


def _type_of(header: str) -> tuple[str, str]:
    message = Message()
    message["Content-Type"] = header[:256] or "application/octet-stream"
    content_type = message.get_content_type() if header else ""
    return content_type, message.get_content_charset() or ""


FORMS: Mapping[str, str] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
}


def form_of(answer: FetchResponse) -> str:
    """Return how the body is read: by what the server says, or else by how it begins.

    Raises:
        UnreadableError: nothing here reads that.
    """
    head = answer.body[:1024].lstrip().lower()
    if head.startswith(b"%pdf-"):
        return "pdf"
    if answer.content_type in FORMS:
        return FORMS[answer.content_type]
    if not answer.content_type and head.startswith((b"<!doctype html", b"<html")):
        return "html"
    if answer.content_type.startswith("text/"):
        return "text"
    raise UnreadableError(SkipReason.UNKNOWN_FORM)
