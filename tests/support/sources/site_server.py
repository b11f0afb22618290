"""Sites of the tests' own, one for each address of the loopback interface, and a hub.

Owns their pages: topics of Python's manual, in folders of their own, some at each site. The hub has
what modules say of themselves, in a data set of several files. Runs as a program of its own, since
a test's daemons may have a network of their own.
"""

import contextlib
import html
import json
import pydoc
import subprocess
import sys
from collections.abc import Generator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pydoc_data.topics import topics
from threading import Event, Thread

from tests.support.sources.mixed_folder import EXPLORED, MODULES
from tests.support.workers.local_hub import serving_hub

PORT = 8931
"""In a network of its own; nobody else is there."""

ANSWER_S = 0.1
"""A site needs some time, too: so that reading can be ended in its midst."""

LEAST_CHARS = 1500
END_TIMEOUT_S = 30.0


HUB_FILES = 5
"""More than parts, so that one of these has two."""


def pages_of(number: int, sites: int) -> dict[str, str]:
    """Return the pages of a site by their paths; all sites together have each topic once."""
    chosen = [(name, text) for name, text in sorted(topics.items()) if len(text) >= LEAST_CHARS]
    own = {f"/{name}/topic.html": text for name, text in chosen[number::sites]}
    links = "".join(f'<p><a href="{path}">{path}</a></p>' for path in own)
    pages = {path: _page(path, text) for path, text in own.items()}
    return {"/": f"<!doctype html><html><body>{links}</body></html>", **pages}


def _page(title: str, text: str) -> str:
    paragraphs = "".join(f"<p>{html.escape(each)}</p>" for each in text.split("\n\n"))
    return (
        f"<!doctype html><html><head><title>{title}</title></head>"
        f"<body><article><h1>{title}</h1>{paragraphs}</article></body></html>"
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sites: dict[str, dict[str, str]]
    """Host -> path -> page."""

    def do_GET(self) -> None:
        Event().wait(ANSWER_S)
        page = self.sites[self.headers["host"].partition(":")[0]].get(self.path)
        body = (page or "not here").encode()
        with contextlib.suppress(ConnectionError):  # whoever asked may have been killed
            self.send_response(404 if page is None else 200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing either: those who ask are killed."""


def hub_files() -> dict[str, bytes]:
    """Return the files of the hub's data set, some modules in each."""
    found = {name: pydoc.getdoc(import_module(name)) for name in (*MODULES, *EXPLORED)}
    rows = [json.dumps({"text": f"{name}\n\n{text}"}) + "\n" for name, text in found.items()]
    return {f"data/train-{n}.jsonl": "".join(rows[n::HUB_FILES]).encode() for n in range(HUB_FILES)}


@contextlib.contextmanager
def serving_sites(prefix: Sequence[str], hosts: Sequence[str]) -> Generator[tuple[list[str], str]]:
    """Serve a site at each of these addresses in the network that `prefix` leads to, and a hub.

    Yields the addresses of the sites and of the hub.
    """
    command = [*prefix, sys.executable, "-m", __name__, *hosts]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            hub = server.stdout.readline().strip()
            assert hub
            yield [f"http://{host}:{PORT}/" for host in hosts], hub
        finally:
            server.communicate(timeout=END_TIMEOUT_S)


def main() -> None:
    """Serve at the addresses that are named until the input ends."""
    hosts = sys.argv[1:]
    _Handler.sites = {host: pages_of(n, len(hosts)) for n, host in enumerate(hosts)}
    for host in hosts:
        server = _Server((host, PORT), _Handler)
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    with serving_hub() as hub:
        hub.files = hub_files()
        print(hub.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
