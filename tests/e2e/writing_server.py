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
from threading import Event, Thread
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"data": [{"id": MODEL}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Event().wait(ANSWER_S)
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

    def _send(self, document: dict[str, Any], status: int = 200) -> None:
        self._send_content(json.dumps(document).encode(), "application/json", status)

    def _send_content(self, content: bytes, kind: str, status: int) -> None:
        # Whoever asked may have been killed meanwhile.
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("content-type", kind)
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
    with socket.socket() as free:
        free.bind((ANYWHERE, 0))
        port = free.getsockname()[1]
    is_apart = prefix[0] == "nsenter"
    with _serving(prefix, port), _serving((), port) if is_apart else contextlib.nullcontext():
        yield f"http://{ANYWHERE}:{port}/v1#{MODEL}"


@contextlib.contextmanager
def _serving(prefix: Sequence[str], port: int) -> Generator[None]:
    command = [*prefix, sys.executable, "-m", __name__, str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield
        finally:
            server.communicate(timeout=OPEN_TIMEOUT_S)


def main() -> None:
    """Serve on the port that is named until the input ends."""
    server = _Server((ANYWHERE, int(sys.argv[1])), _Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
