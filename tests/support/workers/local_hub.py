"""A hub of the tests' own, on the loopback interface, with one data set at one commit."""

import json
import threading
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

NAME = "team/prose"


class LocalHub:
    """What it holds: the bytes of each file. Another set of files is another commit."""

    def __init__(self):
        self.about = f"/api/datasets/{NAME}"
        self.below = f"/datasets/{NAME}"
        self.files: dict[str, bytes] = {}
        self.gone: set[str] = set()
        """Files that are listed and can't be had."""
        self.status = 200
        """What it says of the data set as a whole."""
        self.code = ""
        """What else, where that is an error."""
        self.asked: list[str] = []
        self.url = ""

    @property
    def commit(self):
        """The commit of these files."""
        return sha1(repr(sorted(self.files.items())).encode()).hexdigest()

    def entries(self, below):
        """Return what lies in a folder, as the hub tells it."""
        inside = [name.removeprefix(below) for name in self.files if name.startswith(below)]
        folders = {name.partition("/")[0] for name in inside if "/" in name}
        return [
            {"type": "directory", "oid": "1" * 40, "size": 0, "path": below + name}
            for name in sorted(folders)
        ] + [
            {"type": "file", "oid": "2" * 40, "size": len(self.files[below + name]),
             "path": below + name} for name in inside if "/" not in name
        ]  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def do_GET(self):
        path = urlsplit(self.path).path
        self.hub.asked.append(path)
        about, files = self.hub.about, f"{self.hub.below}/resolve/{self.hub.commit}/"
        if path.startswith(about) and self.hub.status != 200:
            self._reply(b"", self.hub.status, X_Error_Code=self.hub.code)
        elif path.startswith(f"{about}/tree/{self.hub.commit}"):
            below = path.partition(self.hub.commit)[2].strip("/")
            self._reply(json.dumps(self.hub.entries(f"{below}/" if below else "")).encode())
        elif path.startswith(about):
            self._reply(json.dumps(self._told()).encode())
        elif path.startswith(files):
            self._file(path.removeprefix(files))
        else:
            self._reply(b"", 404, X_Error_Code="RepoNotFound")

    do_HEAD = do_GET  # noqa: N815 - the name is the library's

    def _told(self):
        names = [{"rfilename": name} for name in self.hub.files]
        return {"id": NAME, "sha": self.hub.commit, "private": False, "gated": False,
                "disabled": False, "tags": [], "siblings": names}  # fmt: skip

    def _file(self, name):
        if name not in self.hub.files or name in self.hub.gone:
            self._reply(b"", 404, X_Error_Code="EntryNotFound")
            return
        data = self.hub.files[name]
        told = {
            "ETag": f'"{sha1(data).hexdigest()}"',
            "X_Repo_Commit": self.hub.commit,
            "Accept_Ranges": "bytes",
        }
        if asked := self.headers.get("Range", "").removeprefix("bytes="):
            first, _, last = asked.partition("-")
            part = data[int(first) : int(last or len(data)) + 1]
            told["Content_Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
            self._reply(part, 206, **told)
        else:
            self._reply(data, **told)

    def _reply(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def serving_hub():
    """Serve a hub until the end of the block."""
    hub = LocalHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_arguments: None  # who asked has gone
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
