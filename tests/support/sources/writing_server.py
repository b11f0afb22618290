"""A server that writes as OpenAI's would, and always answers the same in the same way.

Owns what it writes, which the prompt and its seed decide: statements that complete a function, or
a question about a passage with its answer, in words of the passage. Runs as a program of its own,
since a test's daemons may have a network of their own. Doesn't know what is made of the answers.
"""

import contextlib
import json
import random
import re
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from blake3 import blake3

MODEL = "writer"
ANYWHERE = "0.0.0.0"
"""Unlike 127.0.0.1 it isn't taken for a server that one member alone can reach."""
ANSWER_S = 0.15
"""A model needs some time, too: so that work can be killed in its midst."""

OPEN_TIMEOUT_S = 30.0

_SHOWN = re.compile(r"```python\n(.*?)\n?```", re.DOTALL)
_WORDS = ("anchor", "basket", "candle", "drawer", "feather", "garden", "hammer", "island", "jacket")
_STATEMENTS = (
    "for {a} in {b}s:\n        {c}.append({a}.{d} * {n})",
    "{a} = [{b} for {b} in {c}s if {b}.{d} > {n}]",
    "while {a}s and {b} < {n}:\n        {b} += {a}s.pop().{d}",
    "if {a} is None or {a}.{b} == {n}:\n        return {c}s[{a}.{d}]",
    "{a}, {b} = sorted(({c}, {d}), key=lambda {c}: {c}.weight + {n})",
)


_ASKED = "\n\n---\n"
"""Between a passage and what is asked about it."""
_TERM = re.compile(r"\b[a-z]{5,}\b")
_QUESTIONS = (
    "How does the {a} of a {b} decide what becomes of its {c}?",
    "Why would somebody who writes a {a} look at the {b} and at the {c} first?",
    "What is a {a} good for where the {b} has no {c} of its own?",
)
_ANSWERS = (
    "The {a} is read before the {b}, so that nobody has to guess what the {c} means.",
    "A {a} that isn't known ends in an error, and the {b} says in which {c} it was found.",
    "It helps to think of the {a} as a promise that the {b} makes to every {c}.",
    "Whoever changes the {a} should look through each {b} that goes with the {c}, too.",
    "In most programs there is one {a} for a {b}, and the {c} is left as it was.",
    "With a {a} it is simpler: the {b} follows from it, and with that the {c}.",
)


def answer(message: str, seed: int) -> str:
    """Return what is written: a question and its answer where a passage is shown, else code."""
    passage, _, asked = message.rpartition(_ASKED)
    if not asked.startswith("Write one question"):
        return completion(message, seed)
    chance = _chance(seed, passage)
    terms = sorted({*_TERM.findall(passage)})
    question, *sentences = (
        each.format(**dict(zip("abc", chance.sample(terms, 3), strict=True)))
        for each in (chance.choice(_QUESTIONS), *chance.sample(_ANSWERS, 5))
    )
    return f"Question: {question}\nAnswer: {' '.join(sentences)}"


def _chance(seed: int, given: str) -> random.Random:
    drawn = blake3(f"{seed}\0{given}".encode()).digest(8)
    return random.Random(int.from_bytes(drawn, "big"))


def completion(message: str, seed: int) -> str:
    """Return the function of a prompt with an end, in a code block."""
    shown = _SHOWN.search(message)
    opening = shown[1].rstrip() if shown else "def nothing():"
    chance = _chance(seed, opening)
    body = "\n".join(f"    {_statement(chance)}" for _ in range(chance.randint(3, 6)))
    return f"```python\n{opening}\n{body}\n    return {chance.choice(_WORDS)}\n```"


def _statement(chance: random.Random) -> str:
    a, b, c, d = chance.sample(_WORDS, 4)
    return chance.choice(_STATEMENTS).format(a=a, b=b, c=c, d=d, n=chance.randrange(1000))


class _Seats:
    """How many are answered at once; who finds no seat is told to come again."""

    def __init__(self) -> None:
        self.most, self.answer_s = 64, ANSWER_S
        self.taken = self.most_taken = self.refused = 0
        self._lock = Lock()

    def take(self) -> bool:
        with self._lock:
            is_free = self.taken < self.most
            self.taken += is_free
            self.refused += not is_free
            self.most_taken = max(self.most_taken, self.taken)
            return is_free

    def leave(self) -> None:
        with self._lock:
            self.taken -= 1


_SEATS = _Seats()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        counts = {"most_at_once": _SEATS.most_taken, "refused": _SEATS.refused}
        self._send({"data": [{"id": MODEL}], **counts})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not _SEATS.take():
            self._send({"error": {"message": "too many requests"}}, 429, retry_after="1")
            return
        try:
            Event().wait(_SEATS.answer_s)
            self._answer(asked)
        finally:
            _SEATS.leave()

    def _answer(self, asked: dict[str, Any]) -> None:
        if asked["model"] != MODEL:
            self._send({"error": {"message": f"model {asked['model']!r} not found"}}, status=404)
            return
        text = answer(asked["messages"][0]["content"], int(asked.get("seed", 0)))
        if asked.get("stream"):
            self._stream(text)
            return
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self._send({"choices": [choice], "usage": {"completion_tokens": len(text) // 4}})

    def _stream(self, text: str) -> None:
        """Send a line at a time, as models write."""
        pieces = [{"delta": {"content": line}} for line in text.splitlines(keepends=True)]
        events = [*pieces, {"delta": {}, "finish_reason": "stop"}]
        said = [b"data: " + json.dumps({"choices": [each]}).encode() for each in events]
        content = b"\n\n".join([*said, b"data: [DONE]", b""])
        self._send_content(content, "text/event-stream", 200)

    def _send(self, document: dict[str, Any], status: int = 200, retry_after: str = "") -> None:
        content = json.dumps(document).encode()
        self._send_content(content, "application/json", status, retry_after)

    def _send_content(self, content: bytes, kind: str, status: int, retry_after: str = "") -> None:
        # Whoever asked may have been killed meanwhile.
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("content-type", kind)
            if retry_after:
                self.send_header("retry-after", retry_after)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing either: those who ask are killed."""


@contextlib.contextmanager
def writing_server(prefix: Sequence[str]) -> Generator[str]:
    """Serve in the network that `prefix` leads to, and in this one; yield what to name it by."""
    port = free_port()
    is_apart = prefix[0] == "nsenter"
    with serving_at(prefix, port), serving_at((), port) if is_apart else contextlib.nullcontext():
        yield name_of(port)


def name_of(port: int) -> str:
    """Return what a cycle is told of the server that answers there."""
    return f"http://{ANYWHERE}:{port}/v1#{MODEL}"


def free_port() -> int:
    """Return a port that nobody answers at."""
    with socket.socket() as free:
        free.bind((ANYWHERE, 0))
        return free.getsockname()[1]


def counts_at(prefix: Sequence[str], port: int) -> dict[str, int]:
    """Return how many were answered at once at the most, and how many refused as too many."""
    ask = (
        f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/').read().decode())"
    )
    told = subprocess.check_output([*prefix, sys.executable, "-c", ask], text=True)
    return json.loads(told)


@contextlib.contextmanager
def serving_at(
    prefix: Sequence[str], port: int, most: int = 64, answer_s: float = ANSWER_S
) -> Generator[subprocess.Popen[str]]:
    """Serve in one network, so many at once at the most; yield the process, which may be killed."""
    command = [*prefix, sys.executable, "-m", __name__, str(port), str(most), str(answer_s)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield server
        finally:
            server.communicate(timeout=OPEN_TIMEOUT_S)


def main() -> None:
    """Serve on the port that is named until the input ends."""
    server = _Server((ANYWHERE, int(sys.argv[1])), _Handler)
    _SEATS.most, _SEATS.answer_s = int(sys.argv[2]), float(sys.argv[3])
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
