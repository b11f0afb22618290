"""Where Prometheus fetches this node's metrics: a small HTTP server, for those who ask for one.

Owns the socket, the bounds on who asks, and opening it again where that failed. Doesn't know what a
metric is. The daemon's own thread only takes connections and readings; the rest is done in a thread
of each request, and nothing that goes wrong there reaches anybody else.
"""

import asyncio
import io
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from jupiterd.address_ranges import is_loopback
from jupiterd.daemon.observability.metrics_reading import MetricsReader, MetricsReading
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.runtime.logged_events import LoggedEvents
from jupiterd.ports import Address

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

log = logging.getLogger(__name__)

READ_TIMEOUT_S: Final = 5.0
"""A daemon that is busier than that isn't well, and the scrape says so by failing."""
REQUEST_TIMEOUT_S: Final = 5.0
MAX_REQUESTS: Final = 8
"""At once; Prometheus asks one at a time."""
FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


async def serve_metrics(sources: DocumentSources, address: Address) -> None:
    """Serve for ever; where the port can't be had, say so once and try again now and then."""
    events = LoggedEvents()
    ours = logging.getLogger("jupiterd")
    ours.addHandler(events)
    try:
        reader = MetricsReader(sources, events)
        async with asyncio.TaskGroup() as group:
            group.create_task(reader.run())
            await _serve(address, reader.read)
    finally:
        ours.removeHandler(events)


async def _serve(address: Address, read: Callable[[], Coroutine[Any, Any, MetricsReading]]) -> None:
    loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
    app = _application(read, loop)
    while True:
        try:
            server = await asyncio.to_thread(_Server, address, app)
        except OSError as error:
            if pause_s == FIRST_PAUSE_S:
                reason = error.strerror or str(error)
                extra = {"address": str(address), "reason": reason, "again": "now and then"}
                log.warning("metrics_not_served", extra=extra)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        else:
            await _answer(server, loop)


async def _answer(server: "_Server", loop: asyncio.AbstractEventLoop) -> None:
    host, port = server.server_address[:2]
    log.info("metrics_served", extra={"url": f"http://{Address(str(host), int(port))}/metrics"})
    if not is_loopback(str(host)):
        meaning = "whoever reaches this port may read the metrics; nothing asks who they are"
        log.warning("metrics_beyond_loopback", extra={"host": host, "means": meaning})
    loop.add_reader(server.fileno(), server.handle_request)
    try:
        await asyncio.Event().wait()
    finally:
        loop.remove_reader(server.fileno())
        server.server_close()


def _application(
    read: Callable[[], Coroutine[Any, Any, MetricsReading]], loop: asyncio.AbstractEventLoop
) -> "WSGIApplication":
    """Return what answers a request; where no reading can be had, the scrape fails."""
    from prometheus_client import make_wsgi_app

    from jupiterd.daemon.observability.metrics_collector import registry_of

    def read_from_thread() -> MetricsReading:
        return asyncio.run_coroutine_threadsafe(read(), loop).result(READ_TIMEOUT_S)

    answer, has_failed = make_wsgi_app(registry_of(read_from_thread)), threading.Event()

    def application(environ: Any, start_response: Any) -> Any:  # noqa: ANN401 - WSGI's own
        try:
            answered = answer(environ, start_response)
        except Exception as error:  # noqa: BLE001 - whatever it is, only this scrape fails
            if not has_failed.is_set():
                has_failed.set()
                log.warning("metrics_not_read", extra={"reason": repr(error)})
            start_response("500 Internal Server Error", [("Content-Type", "text/plain")])
            return [b"this node can't be read just now; its log says why\n"]
        has_failed.clear()
        return answered

    return application


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_TIMEOUT_S

    def log_message(self, *_: object, **__: object) -> None:
        """Say nothing of each request."""

    def get_stderr(self) -> io.StringIO:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Throw away the traces of clients that were too slow."""
        return io.StringIO()


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread of its own, and no more than a few at once."""

    daemon_threads = True
    timeout = 0
    """`handle_request` is called when somebody has come, and must never wait."""

    def __init__(self, address: Address, app: "WSGIApplication") -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._free = threading.Semaphore(MAX_REQUESTS)
        super().__init__((address.host, address.port), _Handler)
        self.set_app(app)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Begin to answer, or hang up on one too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer in this thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, *_: object, **__: object) -> None:
        """Take no notice of a client that went away, or was too slow."""
