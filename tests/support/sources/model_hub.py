"""A small hub of models and data sets on the loopback: the paths its library asks for, no more.

Small files come at once; large ones from another place behind a redirect, as the hub has them.
`python -m tests.support.sources.model_hub ORG/NAME=FOLDER` serves a folder until it is ended
(HF_ENDPOINT).
"""

import json
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin", ".gguf", "tokenizer.json")
"""How the names of files end that the hub keeps apart."""

CHUNK_BYTES = 1 << 16


@dataclass
class HubFolder:
    """One model: its files, and what the hub thinks of whoever asks."""

    files: dict[str, bytes]
    revisions: tuple[str, ...] = ("main",)
    status: int = 200
    """What is answered where the model is asked for."""
    code: str = ""
    """X-Error-Code, where that is an error."""
    token: str = ""
    """Whoever doesn't show it is told `status`; empty: everybody is."""
    card: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        return sha1(
            repr([(n, sha1(d).hexdigest()) for n, d in self.files.items()]).encode()
        ).hexdigest()


@dataclass
class ModelHub:
    """All that it holds, and what it heard."""

    models: dict[str, HubFolder] = field(default_factory=dict)
    data_sets: dict[str, HubFolder] = field(default_factory=dict)
    """That they are there is told, and no more."""
    url: str = ""
    asked: list[str] = field(default_factory=list)
    """Method and path of each request, with the first byte that was asked for."""
    cut_after: list[int] = field(default_factory=list)
    """The next answers of weights end after so many bytes each, without a word."""
    too_often: int = 0
    """So many of the next requests are told to wait."""
    spoilt: bool = False
    """Weights come with another first byte."""
    bytes_per_s: float = 0.0
    """Of a large file; 0: as fast as it goes."""
    place: str = ""
    """Where large files are said to lie: another host, as for the hub's own."""
    shown: list[str] = field(default_factory=list)
    """The tokens that were shown there."""
    wanted: int = 0
    """Once so many bytes of weights were sent, `is_reached`."""
    is_reached: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    sent: int = 0
    """Bytes of weights."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: ModelHub

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        start = self.headers.get("Range", "").removeprefix("bytes=")
        self.hub.asked.append(f"{self.command} {path} {start}".strip())
        if self.hub.too_often:
            self.hub.too_often -= 1
            self._reply(b"", 429, Retry_After="0")
        elif path.startswith("/api/models/"):
            self._tell_of(path.removeprefix("/api/models/"), self.hub.models)
        elif path.startswith("/api/datasets/"):
            self._tell_of(path.removeprefix("/api/datasets/"), self.hub.data_sets)
        elif path.startswith("/large/"):
            self._send_large(path.removeprefix("/large/"))
        else:
            repository, _, rest = path.strip("/").partition("/resolve/")
            revision, _, name = rest.partition("/")
            self._resolve(repository, revision, name)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _found(
        self, repository: str, revision: str, kept: Mapping[str, HubFolder]
    ) -> HubFolder | None:
        """Return what may be told of; where it may not be, that is answered."""
        model = kept.get(repository)
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if model is None:
            self._reply(b"", 401 if not shown else 404, X_Error_Code="RepoNotFound")
        elif model.status != 200 and (not model.token or shown != model.token):
            self._reply(b"", model.status, X_Error_Code=model.code)
        elif revision not in {*model.revisions, model.commit}:
            self._reply(b"", 404, X_Error_Code="RevisionNotFound")
        else:
            return model
        return None

    def _tell_of(self, rest: str, kept: Mapping[str, HubFolder]) -> None:
        repository, _, revision = rest.partition("/revision/")
        if (model := self._found(repository, revision or "main", kept)) is None:
            return
        siblings = [_sibling(name, data) for name, data in model.files.items()]
        told = {"id": repository, "modelId": repository, "sha": model.commit, "private": False,
                "gated": False, "disabled": False, "tags": [], "siblings": siblings}  # fmt: skip
        if model.card:
            told["cardData"] = model.card
        if model.kinds:
            told["safetensors"] = {"parameters": model.kinds, "total": sum(model.kinds.values())}
        self._reply(json.dumps(told).encode())

    def _resolve(self, repository: str, revision: str, name: str) -> None:
        if (model := self._found(repository, revision, self.hub.models)) is None:
            return
        data = model.files.get(name)
        if data is None:
            self._reply(b"", 404, X_Error_Code="EntryNotFound", X_Repo_Commit=model.commit)
        elif name.endswith(LARGE):
            digest = _digest(data)
            self._reply(
                b"", 302, Location=f"{self.hub.place}/large/{digest}", X_Repo_Commit=model.commit,
                X_Linked_Size=str(len(data)), X_Linked_ETag=f'"{digest}"',
            )  # fmt: skip
        else:
            self._reply(data, ETag=f'"{_blob_id(data)}"', X_Repo_Commit=model.commit)

    def _send_large(self, digest: str) -> None:
        if shown := self.headers.get("Authorization"):
            self.hub.shown.append(shown)
        every = (pair for model in self.hub.models.values() for pair in model.files.items())
        name, data = next((pair for pair in every if _digest(pair[1]) == digest), ("", b""))
        if not name:
            self._reply(b"", 404)
            return
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        first = int(asked.partition("-")[0] or 0)
        is_weights = name.endswith(".safetensors")
        body = (b"\xff" + data[1:] if is_weights and self.hub.spoilt else data)[first:]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command != "HEAD":
            self._send(body, is_weights=is_weights)

    def _send(self, body: bytes, *, is_weights: bool) -> None:
        is_cut = is_weights and self.hub.cut_after
        most = self.hub.cut_after.pop(0) if is_cut else len(body)
        for start in range(0, most, CHUNK_BYTES):
            chunk = body[start : min(start + CHUNK_BYTES, most)]
            self.wfile.write(chunk)
            self.hub.sent += len(chunk) if is_weights else 0
            if 0 < self.hub.wanted <= self.hub.sent:
                self.hub.is_reached.set()
            if self.hub.bytes_per_s:
                self.hub.ended.wait(len(chunk) / self.hub.bytes_per_s)
        if most < len(body):
            self.close_connection = True

    def _reply(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


_digests: dict[int, tuple[bytes, str]] = {}


def _digest(data: bytes) -> str:
    """Return the sha256 of a file, which is worked out once."""
    if id(data) not in _digests:
        _digests[id(data)] = data, sha256(data).hexdigest()
    return _digests[id(data)][1]


def _blob_id(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _sibling(name: str, data: bytes) -> dict[str, object]:
    told: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": _blob_id(data)}
    if name.endswith(LARGE):
        told["lfs"] = {"sha256": _digest(data), "size": len(data), "pointerSize": 135}
    return told


@contextmanager
def serving_models(port: int = 0) -> Generator[ModelHub]:
    """Serve a hub until the end of the block."""
    hub = ModelHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_arguments: None  # who asked has gone
    hub.url = f"http://127.0.0.1:{server.server_port}"
    hub.place = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder as a model of the hub has them."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def _serve(named: list[str], mib_per_s: float) -> None:
    with serving_models() as hub:
        hub.bytes_per_s = mib_per_s * 2**20
        for each in named:
            repository, _, folder = each.partition("=")
            hub.models[repository] = HubFolder(files_of(Path(folder)))
        print(f"HF_ENDPOINT={hub.url}", flush=True)
        seen = 0
        while not hub.ended.wait(0.2):
            for line in hub.asked[seen:]:
                print(line, flush=True)
            seen = len(hub.asked)


if __name__ == "__main__":
    speed = [float(each.partition("=")[2]) for each in sys.argv[1:] if each.startswith("MIB/S=")]
    _serve([each for each in sys.argv[1:] if not each.startswith("MIB/S=")], *(speed or [0.0]))
