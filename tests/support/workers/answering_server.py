"""A small server that answers like OpenAI's, well or badly."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Streamed:
    """An answer that is sent piece by piece, each as soon as it is there."""

    events: Iterable[bytes]


Reply = tuple[int, bytes, dict[str, str]] | Streamed


def answer(text: str, finish: str = "stop", tokens: int = 5) -> Reply:
    """Return a chat completion."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    said = {"choices": [choice], "usage": {"completion_tokens": tokens}}
    return 200, json.dumps(said).encode(), {}


def event(**said: Any) -> bytes:
    """Return one event of a stream."""
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def piece(text: str, finish: str | None = None) -> bytes:
    """Return the event that brings a piece of an answer."""
    return event(choices=[{"delta": {"content": text}, "finish_reason": finish}])


END = b"data: [DONE]\n\n"


def trouble(status: int, message: str = "", **headers: str) -> Reply:
    """Return an error as OpenAI's server tells one."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, json.dumps({"error": {"message": message}}).encode(), named


@dataclass
class Answering:
    """The server, and what it was asked."""

    url: str
    reply: Callable[[dict[str, Any], int], Reply]
    """Given the request and how many came before it."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    models: list[str] | None = field(default_factory=lambda: ["tiny"])
    """That it lists; None: it breaks off when it is asked for them."""
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def answering(reply: Callable[[dict[str, Any], int], Reply]) -> Iterator[Answering]:
    """Serve on the loopback interface."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if served.models is None:  # as mlx_lm.server breaks off where there is no cache
                self.close_connection = True
                return
            rows = [{"id": name} for name in served.models]
            self._send((200, json.dumps({"data": rows}).encode(), {}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with served.lock:
                number = len(served.asked)
                served.asked.append(body)
                served.keys.append(self.headers.get("authorization", ""))
                served.at_once += 1
                served.most_at_once = max(served.most_at_once, served.at_once)
            try:
                done = served.reply(body, number)
            finally:
                with served.lock:
                    served.at_once -= 1
            self._send(done)

        def _send(self, done: Reply) -> None:
            if isinstance(done, Streamed):
                self._stream(done)
                return
            status, content, headers = done
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _stream(self, done: Streamed) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream; charset=utf-8")
            self.send_header("connection", "close")
            self.end_headers()
            for each in done.events:
                self.wfile.write(each)
                self.wfile.flush()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64  # sixteen connections at once

    server = Server(("127.0.0.1", 0), Handler)
    served = Answering(f"http://127.0.0.1:{server.server_address[1]}/v1", reply)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
