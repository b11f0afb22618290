"""A web site of the tests' own, on the loopback interface: it counts what it is asked for."""

import threading
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LONG = "This is a sentence of some length about the matter in hand, and another one follows it. "


def page(title, *links, head="", body=LONG * 4):
    """Return the HTML of a page with links."""
    anchors = "".join(f'<p><a href="{link}">to {link}</a></p>' for link in links)
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body><article>"
        f"<h1>{title}</h1><p>{title}: {body}</p>{anchors}</article></body></html>"
    )


class Reply:
    """What the site says at one path."""

    def __init__(self, body=b"", status=200, content_type="text/html", stream=None, **headers):
        self.body = body.encode() if isinstance(body, str) else body
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.headers.setdefault("Content-Type", content_type)
        self.stream = stream
        """Called with the connection's file in place of sending the body."""


class LocalSite:
    """Replies by path; a changed body has another ETag."""

    def __init__(self):
        self.replies: dict[str, Reply] = {}
        self.afterwards: dict[str, Reply] = {}
        """What it says at a path from the second time on."""
        self.asked: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.agents: set[str] = set()
        self.hosts: set[str] = set()
        self.url = ""

    def put(self, path, *arguments, **named):
        """Say from now on at this path what `Reply` is given."""
        self.replies[path] = Reply(*arguments, **named)

    def forget(self):
        """Count anew."""
        self.asked.clear()
        self.statuses.clear()


@contextmanager
def serving():
    """Serve a site until the end of the block."""
    site = LocalSite()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            site.asked.append(self.path)
            site.agents.add(self.headers["User-Agent"])
            site.hosts.add(self.headers["Host"])
            reply = site.replies.get(self.path) or Reply("not here", 404)
            if self.path in site.afterwards:
                site.replies[self.path] = site.afterwards.pop(self.path)
            etag = f'"{hash(reply.body)}"'
            if reply.status == 200 and self.headers.get("If-None-Match") == etag:
                reply = Reply(b"", 304)
            site.statuses[reply.status] += 1
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status == 200:
                self.send_header("ETag", etag)
            if reply.stream is not None:
                self.send_header("Connection", "close")
                self.close_connection = True
                self.end_headers()
                with suppress(OSError):
                    reply.stream(self.wfile)
                return
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_arguments: None  # who asked was killed
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
