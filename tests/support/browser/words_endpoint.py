"""An endpoint whose models say what a test wants, for the page in front of it.

Owns answers that come word by word, may be held up, and may fail; and what was asked. Gives out the
page with a strict policy. Doesn't know a real engine, nor how the daemon checks requests.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

PAGE = Path(__file__).parents[3] / "jupiterd" / "daemon" / "serving" / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass
class WordsEndpoint:
    """What it says; a test changes it as it goes."""

    cards: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """The models, `promoted` and so on, with what is known of each."""
    words: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What each model answers, in its pieces."""
    chats: bool = True
    """Its models have templates."""
    token: str = ""
    held_before: int | None = None
    """The number of a piece that isn't sent before `go` is set."""
    go: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """A client went away in mid-answer."""
    refusal: tuple[int, Mapping[str, Any], Mapping[str, str]] | None = None
    """Status, error and headers in place of an answer."""
    most_messages: int | None = None
    """More than so many are longer than its context."""
    breaks_with: Mapping[str, Any] | None = None
    """The error that ends an answer which has begun."""
    is_cut: bool = False
    """The connection is cut in place of the piece that was held."""
    is_gone: bool = False
    """Nobody answers any more, once the connection was cut."""
    thoughts: list[str] = field(default_factory=list[str])
    """What a model that reasons writes before its answer, in its pieces."""
    waits_for: str = ""
    """Told in a comment before the first piece."""
    end: str = "stop"
    piece_s: float = 0.0
    """How long each piece takes."""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    url: str = ""

    async def health(self, request: web.Request) -> web.Response:
        """Say that somebody is there, or cut the connection."""
        if self.is_gone and request.transport is not None:
            request.transport.abort()
        return web.json_response({"status": "ok"})

    async def listed(self, request: web.Request) -> web.Response:
        """List the models."""
        return self._let_in(request) or web.json_response({"data": [{"id": n} for n in self.cards]})

    async def shown(self, request: web.Request) -> web.Response:
        """Show one model."""
        name = request.match_info["name"]
        return self._let_in(request) or web.json_response({"id": name, "jupiter": self.cards[name]})

    async def answered(self, request: web.Request) -> web.StreamResponse:
        """Write an answer."""
        if refused := self._let_in(request):
            return refused
        body = await request.json()
        self.asked.append(body | {"path": request.path})
        if not self.chats and "messages" in body:
            error = {"message": f"{body['model']} has no chat template: it completes text"}
            return web.json_response({"error": error}, status=400)
        if self.most_messages and len(body.get("messages", ())) > self.most_messages:
            error = {"message": "the prompt is too long", "code": "context_length_exceeded"}
            return web.json_response({"error": error}, status=400)
        if self.refusal:
            status, error, headers = self.refusal
            return web.json_response({"error": error}, status=status, headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._write(response, body["model"], is_chat="messages" in body)
            if self.is_cut and request.transport is not None:
                request.transport.abort()
        except asyncio.CancelledError:
            self.gone.set()
            raise
        return response

    async def _write(self, response: web.StreamResponse, model: str, *, is_chat: bool) -> None:
        pieces = self.words.get(model, ["Hello", " there", "."])
        count = len(self.thoughts) + len(pieces)
        if self.waits_for:
            await response.write(f": {self.waits_for}\n\n".encode())
        for thought in self.thoughts:
            await asyncio.sleep(self.piece_s)
            delta = {"reasoning_content": thought}
            await response.write(event({"choices": [{"delta": delta, "finish_reason": None}]}))
        for place, piece in enumerate(pieces):
            if place == self.held_before:
                await self.go.wait()
                if self.is_cut:
                    return
            await asyncio.sleep(self.piece_s)
            said = {"delta": {"content": piece}} if is_chat else {"text": piece}
            await response.write(event({"choices": [{**said, "finish_reason": None}]}))
        if self.breaks_with:
            await response.write(event({"error": self.breaks_with}))
        else:
            await response.write(event({"choices": [{"delta": {}, "finish_reason": self.end}]}))
            await response.write(event({"choices": [], "usage": {"completion_tokens": count}}))
        await response.write(b"data: [DONE]\n\n")

    def _let_in(self, request: web.Request) -> web.Response | None:
        if not self.token or request.headers.get("Authorization") == f"Bearer {self.token}":
            return None
        error = {"message": "the token is missing or wrong", "code": "invalid_api_key"}
        return web.json_response({"error": error}, status=401)


def event(said: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(said).encode() + b"\n\n"


async def page_file(request: web.Request) -> web.Response:
    """Give out one file of the page."""
    path = PAGE / (request.match_info.get("file") or "index.html")
    if not path.is_file():
        raise web.HTTPNotFound
    return web.Response(
        body=path.read_bytes(),
        content_type=TYPES[path.suffix],
        charset="utf-8",
        headers={"Content-Security-Policy": POLICY},
    )


@asynccontextmanager
async def serving(endpoint: WordsEndpoint) -> AsyncGenerator[WordsEndpoint]:
    """Let it listen on a port of the loopback interface."""
    app = web.Application()
    app.add_routes(
        [
            web.get("/health", endpoint.health),
            web.get("/v1/models", endpoint.listed),
            web.get("/v1/models/{name:.+}", endpoint.shown),
            web.post("/v1/chat/completions", endpoint.answered),
            web.post("/v1/completions", endpoint.answered),
            web.get("/", page_file),
            web.get("/{file}", page_file),
        ]
    )
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        yield endpoint
    finally:
        await runner.cleanup()
