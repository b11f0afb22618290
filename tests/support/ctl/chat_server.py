"""A server on a unix socket that answers as the daemon's endpoint does, word by word.

Owns what each of its models says, and a record of what was asked and who went away. Doesn't know
who asks. It runs in a thread of its own.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from aiohttp import web
from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from jupiterd.locations import SERVE_SOCKET

HOLD = object()
"""Among the words of an answer: the server goes on when its `go` is set."""


@dataclass(frozen=True)
class Refusal:
    """An answer that is an error."""

    status: int
    error: dict[str, Any] | str
    retry_after: str = ""


@dataclass
class Served:
    """One model: what it is, and what it says to a request."""

    says: Callable[[dict[str, Any]], Iterable[Any] | Refusal] = lambda _: ["hello", " there"]
    jupiter: dict[str, Any] | None = field(default_factory=lambda: {"chat": True})
    has_usage: bool = True


@dataclass
class ChatServer:
    """The server, and what came of it."""

    models: dict[str, Served]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The path and the body of each request."""
    go: Event = field(default_factory=Event)
    held: Event = field(default_factory=Event)
    """An answer has come to a HOLD."""
    gone: Event = field(default_factory=Event)
    """A client went away in the midst of its answer."""

    def bodies(self) -> list[dict[str, Any]]:
        """Return what was asked."""
        return [body for _, body in self.asked]

    async def facts(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in self.models:
            return _refused(Refusal(404, _unknown(name)))
        told = {"id": name, "object": "model"}
        jupiter = self.models[name].jupiter
        return web.json_response(told if jupiter is None else {**told, "jupiter": jupiter})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append((request.path, body))
        model = self.models[body["model"]]
        said = model.says(body)
        if isinstance(said, Refusal):
            return _refused(said)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._stream(response, model, said, is_chat="chat" in request.path)
        except asyncio.CancelledError:
            self.gone.set()
            raise
        return response

    async def _stream(
        self, response: web.StreamResponse, model: Served, said: Iterable[Any], *, is_chat: bool
    ) -> None:
        count = 0
        for word in said:
            if word is HOLD:
                self.held.set()
                await _until(self.go)
            elif isinstance(word, bytes):
                await response.write(word)
            else:
                count += 1
                choice = {"delta": {"content": word}} if is_chat else {"text": word}
                await _send(response, {"choices": [{**choice, "finish_reason": None}]})
        await _send(response, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
        if model.has_usage:
            usage = {"prompt_tokens": 7, "completion_tokens": count}
            await _send(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")


@contextmanager
def chat_server(state_dir: Path, **models: Served) -> Iterator[ChatServer]:
    """Serve models on the socket of a state folder; `promoted` is always there."""
    server = ChatServer({"promoted": Served(), **models})
    app = web.Application()
    app.router.add_get("/v1/models/{name:.+}", server.facts)
    app.router.add_post("/v1/chat/completions", server.answer)
    app.router.add_post("/v1/completions", server.answer)

    async def start() -> web.AppRunner:
        runner = web.AppRunner(app, handler_cancellation=True)
        await runner.setup()
        await web.UnixSite(runner, str(state_dir / SERVE_SOCKET)).start()
        return runner

    with start_blocking_portal() as portal:
        runner = portal.call(start)
        try:
            yield server
        finally:
            server.go.set()
            portal.call(runner.cleanup)


async def _send(response: web.StreamResponse, fields: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(fields).encode() + b"\n\n")


async def _until(event: Event) -> None:
    """Wait for it so that a client who goes away ends the wait."""
    await to_thread.run_sync(event.wait, abandon_on_cancel=True)


def _refused(refusal: Refusal) -> web.Response:
    headers = {"Retry-After": refusal.retry_after} if refusal.retry_after else {}
    return web.json_response({"error": refusal.error}, status=refusal.status, headers=headers)


def _unknown(name: str) -> dict[str, str]:
    hint = "jupiterctl model list"
    return {"message": f"there is no model {name}", "code": "model_not_found", "hint": hint}
